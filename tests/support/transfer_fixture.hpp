// SnapshotsBetweenAgents: two snapshot folders, a real server for one of them, fetches into the
// other, and servers with scripted answers.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "agent/daemon/snapshots/snapshot_fetch.hpp"
#include "agent/daemon/snapshots/snapshot_server.hpp"
#include "common/machine/clock.hpp"
#include "rendezvous/protocol/transfer/snapshot_protocol.hpp"
#include "snapshot_files/archive/crc32.hpp"
#include "snapshot_files/folders/catalog.hpp"
#include "snapshot_files/folders/commit.hpp"

namespace cpprun::test {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using snapshot_files::Manifest;
using snapshot_files::real_files;
using snapshot_protocol::Answer;
using snapshot_protocol::Request;

inline constexpr const char* kSecret = "0123456789abcdef0123456789abcdef";
inline constexpr int64_t kStep = 20;
inline const std::string kId(32, 'a');

inline std::string text_of(size_t bytes) {
  std::string text(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 2654435761U >> 13);
  return text;
}

inline std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline Manifest manifest_of(const std::map<std::string, std::string>& files) {
  Manifest manifest;
  manifest.id = kId;
  manifest.step = kStep;
  manifest.torch = manifest.cpprun = "1";
  manifest.saved_at = "2026-11-21T00:00:00Z";
  for (const auto& [name, text] : files) {
    manifest.files.push_back({name, text.size(), archive::crc32(archive::bytes_of(text))});
  }
  return manifest;
}

// A server with a scripted answer to each request on each connection.
class FakeServer {
 public:
  using Answer = std::function<bool(PeerSocket&, const Request&)>;  // false: disconnect

  explicit FakeServer(Answer answer) : answer_(std::move(answer)) {
    listener_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~FakeServer() {
    cancel_token_->stop();
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }

  uint16_t port = 0;
  int connections = 0;  // read after the fetch is over

 private:
  void run() {
    for (;;) {
      UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!socket.is_open()) return;
      ++connections;
      PeerSocket peer(std::move(socket), cancel_token_);
      for (;;) {
        Result<std::string> line = peer.receive_line(5s);
        if (!line) break;
        Result<Request> request = snapshot_protocol::decode_request(*line);
        if (!request || !answer_(peer, *request)) break;
      }
    }
  }

  const Answer answer_;
  const std::shared_ptr<CancelToken> cancel_token_ = std::make_shared<CancelToken>();
  UniqueFd listener_;
  std::thread thread_;
};

class SnapshotsBetweenAgents : public testing::Test {
 public:
  SnapshotsBetweenAgents() {
    std::string name = (fs::temp_directory_path() / "cpprun-fetch-XXXXXX").string();
    root = ::mkdtemp(name.data());
    there = root / "there";
    here = root / "here";
  }
  ~SnapshotsBetweenAgents() override { fs::remove_all(root); }

  // A complete snapshot in `there`.
  void has(const std::map<std::string, std::string>& files) {
    manifest = manifest_of(files);
    auto draft =
        snapshot_files::Draft::create(real_files(), there, kStep, snapshot_files::make_nonce());
    ASSERT_TRUE(draft) << draft.error().text;
    for (const auto& [name, text] : files) std::ofstream(draft->path_of(name)) << text;
    ASSERT_TRUE(draft->write_manifest(manifest));
    ASSERT_TRUE(draft->publish());
  }
  void serves(const std::string& secret = kSecret) {
    auto made = SnapshotServer::start(there, "127.0.0.1", {}, server_tls);
    ASSERT_TRUE(made) << made.error().text;
    server = std::move(*made);
    server->allow(secret);
    port = server->port();
  }

  Fetched fetches(Duration stalls = 2s) {
    FetchTask task;
    task.dir = here;
    task.resume.snapshot = {kStep, kId};
    task.resume.source_address = "127.0.0.1";
    task.resume.source_port = port;
    task.secret = kSecret;
    task.stalls = stalls;
    task.queue = 3s;
    task.tls = client_tls;
    return fetch_snapshot(real_files(), task, cancel_token,
                          [this](uint64_t bytes) { announced = bytes; });
  }
  Fetched fetches_from(FakeServer& fake, Duration stalls = 400ms) {
    port = fake.port;
    return fetches(stalls);
  }

  void expect_here(const std::map<std::string, std::string>& files) {
    auto found = snapshot_files::look_at(real_files(), here / "step-20");
    ASSERT_TRUE(found) << found.error().text;
    EXPECT_EQ(found->manifest, manifest);
    EXPECT_TRUE(snapshot_files::verify(real_files(), *found));
    for (const auto& [name, text] : files) {
      EXPECT_EQ(content_of(here / "step-20" / name), text) << name;
    }
    expect_no_traces(1);
  }
  // Neither a snapshot nor a draft.
  void expect_no_traces(size_t entries = 0) {
    if (!fs::exists(here)) return;
    const auto all = fs::directory_iterator(here);
    EXPECT_EQ(static_cast<size_t>(std::distance(begin(all), end(all))), entries);
  }
  void expect_failed(const Fetched& fetched, const std::string& words, bool is_damaged = false) {
    ASSERT_FALSE(fetched.status);
    const std::string& text = fetched.status.error().text;
    EXPECT_NE(text.find(words), std::string::npos) << text;
    EXPECT_TRUE(text.starts_with("the snapshot of step 20 could not be fetched from 127.0.0.1:"));
    EXPECT_EQ(fetched.is_damaged, is_damaged) << text;
    expect_no_traces();
  }

  // The server's answer to this line; "" if it disconnects.
  std::string asks(const std::string& line) {
    auto peer = PeerSocket::connect("127.0.0.1", port, 2s, cancel_token);
    EXPECT_TRUE(peer);
    EXPECT_TRUE(peer->send(line + "\n", 2s));
    Result<std::string> answer = peer->receive_line(5s);
    return answer ? *answer : "";
  }
  std::string asks_for(const std::string& file, const std::string& secret = kSecret,
                       const std::string& id = kId) {
    const std::string line = "cpprun-snapshot-1 " + secret + " 20 " + id + " " + file;
    const auto until = std::chrono::steady_clock::now() + 20s;
    std::string answer = asks(line);
    // The server may not have ended the connections of before.
    while (answer == "busy" && std::chrono::steady_clock::now() < until) answer = asks(line);
    return answer;
  }

  fs::path root, there, here;
  Manifest manifest;
  std::unique_ptr<SnapshotServer> server;
  uint16_t port = 0;
  uint64_t announced = 0;
  std::shared_ptr<const JobTls> server_tls, client_tls;  // null: plain
  std::shared_ptr<CancelToken> cancel_token = std::make_shared<CancelToken>();
};

// Answers like a real server, from a map; the manifest is text in it.
inline bool give(PeerSocket& peer, const std::string& text, uint64_t announced) {
  return peer.send(encode(Answer{Answer::Kind::Bytes, announced}), 1s).ok() &&
         peer.send(text, 1s).ok();
}
inline bool give(PeerSocket& peer, const std::string& text) {
  return give(peer, text, text.size());
}

}  // namespace cpprun::test
