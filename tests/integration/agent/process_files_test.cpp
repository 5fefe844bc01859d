// Log folders and port reservations.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "agent/process/spawn/port_reservation.hpp"
#include "agent/process/streams/log_folder.hpp"
#include "common/machine/port_owner.hpp"
#include "common/machine/unique_fd.hpp"
#include "tests/support/process_fixture.hpp"

namespace cpprun::test {
namespace {

namespace fs = std::filesystem;

TEST(LogFolderTest, LayoutMatchesTorchrun) {
  const TemporaryFolder base;
  auto folder = LogFolder::make(base / "deep/logs", "job-17", "/tmp");
  ASSERT_TRUE(folder.ok());
  ASSERT_TRUE(folder->begin_attempt(0, 1, 2).ok());
  const fs::path run = folder->run_folder();
  EXPECT_EQ(run.parent_path(), base / "deep/logs");
  EXPECT_TRUE(run.filename().string().starts_with("job-17_"));
  EXPECT_EQ(run.filename().string().size(), 7U + 8U);
  EXPECT_EQ(folder->stream_file(1, "stdout.log"), (run / "attempt_0/1/stdout.log").string());
  EXPECT_EQ(folder->attempt_file("filtered_stdout.log"),
            (run / "attempt_0/filtered_stdout.log").string());
  EXPECT_TRUE(fs::is_directory(run / "attempt_0/0"));
  EXPECT_TRUE(fs::is_directory(run / "attempt_0/1"));
  EXPECT_EQ(fs::read_symlink(run / "latest"), "attempt_0");
  EXPECT_EQ(folder->leave(true), "");
  EXPECT_TRUE(fs::exists(run));
}

TEST(LogFolderTest, RepeatedAttemptKeepsTheOldFolder) {
  const TemporaryFolder base;
  auto folder = LogFolder::make(base.path(), "x", "/tmp");
  ASSERT_TRUE(folder.ok() && folder->begin_attempt(0, 4, 1).ok());
  std::ofstream(folder->stream_file(0, "stdout.log")) << "old";
  ASSERT_TRUE(folder->begin_attempt(0, 5, 1).ok());
  EXPECT_EQ(read_file(folder->run_folder() + "/attempt_0.round_4/0/stdout.log"), "old");
  EXPECT_FALSE(fs::exists(folder->stream_file(0, "stdout.log")));
  ASSERT_TRUE(folder->begin_attempt(1, 6, 1).ok());
  EXPECT_EQ(fs::read_symlink(folder->run_folder() + "/latest"), "attempt_1");
}

TEST(LogFolderTest, RemovesTheWholeTemporaryFolder) {
  const TemporaryFolder base;
  auto folder = LogFolder::make("", "none", base.path());
  ASSERT_TRUE(folder.ok() && folder->begin_attempt(0, 1, 1).ok());
  EXPECT_TRUE(folder->run_folder().starts_with(base / "torchelastic_"));
  EXPECT_EQ(folder->leave(true), "");
  EXPECT_TRUE(fs::is_empty(base.path()));
}

// Not even root can make a folder in /proc.
TEST(LogFolderTest, SkipsAnUnwritableTemporaryFolder) {
  for (const char* dir : {"/proc", "/nowhere"}) {
    auto folder = LogFolder::make("", "none", dir);
    ASSERT_TRUE(folder.ok()) << folder.error().text;
    EXPECT_TRUE(folder->run_folder().starts_with("/tmp/torchelastic_")) << folder->run_folder();
    EXPECT_EQ(folder->leave(true), "");
  }
}

TEST(LogFolderTest, DevNullMeansNoFiles) {
  auto folder = LogFolder::make("/dev/null", "x", "/tmp");
  ASSERT_TRUE(folder.ok() && folder->begin_attempt(0, 1, 4).ok());
  EXPECT_EQ(folder->run_folder(), "");
  EXPECT_EQ(folder->stream_file(0, "stdout.log"), "");
}

TEST(LogFolderTest, NamesTheFileInTheWay) {
  const TemporaryFolder base;
  std::ofstream(base / "file") << "x";
  for (const std::string& dir : {base / "file", base / "file/below"}) {
    auto folder = LogFolder::make(dir, "x", "/tmp");
    ASSERT_FALSE(folder.ok());
    EXPECT_NE(folder.error().text.find("a file is in its place"), std::string::npos)
        << folder.error().text;
  }
  EXPECT_FALSE(LogFolder::make("/proc/nowhere", "x", "/tmp").ok());
}

TEST(LogFolderTest, ShortensLongNamesAndRefusesLongPaths) {
  const TemporaryFolder base;
  std::string id;
  for (int i = 0; i < 200; ++i) id += "\xc3\xa4";  // two bytes each
  auto folder = LogFolder::make(base.path(), id + "/x", "/tmp");
  ASSERT_TRUE(folder.ok()) << folder.error().text;
  const std::string name = fs::path(folder->run_folder()).filename().string();
  EXPECT_LE(name.size(), 255U);
  EXPECT_EQ((name.size() - 9) % 2, 0U);  // not cut inside a character
  std::string dir = base.path();
  while (dir.size() < 4000) dir.append("/").append(100, 'd');
  auto refused = LogFolder::make(dir, "x", "/tmp");
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().text.find("too long"), std::string::npos);
}

UniqueFd listener(uint16_t port, bool reuse) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int one = 1;
  if (reuse) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) < 0)
    return UniqueFd();
  if (::listen(socket.get(), 1) < 0) return UniqueFd();
  return socket;
}

TEST(PortReservationTest, TheServerCanListenOnAReservedPort) {
  auto port = PortReservation::make(std::nullopt);
  ASSERT_TRUE(port.ok());
  EXPECT_GT(port->port(), 0);
  EXPECT_FALSE(listener(port->port(), false).is_open());
  EXPECT_TRUE(listener(port->port(), true).is_open());
}

TEST(PortReservationTest, TwoReservationsExcludeEachOther) {
  auto first = PortReservation::make(std::nullopt);
  ASSERT_TRUE(first.ok());
  const uint16_t number = first->port();
  auto second = PortReservation::make(number);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().text.find("port " + std::to_string(number) + " is taken by pid " +
                                     std::to_string(::getpid())),
            std::string::npos)
      << second.error().text;
  PortReservation moved = std::move(*first);
  EXPECT_EQ(moved.port(), number);
  EXPECT_FALSE(PortReservation::make(number).ok());
  { const PortReservation last = std::move(moved); }
  EXPECT_TRUE(PortReservation::make(number).ok());
}

TEST(PortReservationTest, NamesTheListeningProcess) {
  const UniqueFd server = listener(0, false);
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(server.get(), reinterpret_cast<sockaddr*>(&address), &size);
  const uint16_t number = ntohs(address.sin_port);
  auto refused = PortReservation::make(number);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().text.find("pid " + std::to_string(::getpid())), std::string::npos)
      << refused.error().text;
  EXPECT_NE(port_owner(number), "");
}

TEST(PortReservationTest, ManyFreePortsAreDistinct) {
  std::vector<PortReservation> held;
  std::set<uint16_t> ports;
  for (int i = 0; i < 500; ++i) {
    auto port = PortReservation::make(std::nullopt);
    ASSERT_TRUE(port.ok());
    EXPECT_TRUE(ports.insert(port->port()).second);
    held.push_back(std::move(*port));
  }
}

}  // namespace
}  // namespace cpprun::test
