// Lists of hosts in all formats, and their errors.
#include "launcher/ssh/plan/host_list.hpp"

#include "tests/unit/launcher/options/options_support.hpp"

#include "common/limits/ssh.hpp"

namespace cpprun::ssh {
namespace {

using test::holds;

using Hosts = std::vector<Host>;

const Hosts kTwo = {{"a", 8}, {"b", 4}};

std::string error_of_hosts(const std::string& list) {
  const Result<Hosts> hosts = parse_hosts(list);
  return hosts ? "accepted" : hosts.error().text;
}

std::string error_of_file(const std::string& text) {
  const Result<Hosts> hosts = parse_hostfile(text, "hosts.txt");
  return hosts ? "accepted" : hosts.error().text;
}

Hosts file(const std::string& text) {
  Result<Hosts> hosts = parse_hostfile(text, "hosts.txt");
  if (hosts) return *hosts;
  ADD_FAILURE() << hosts.error().text;
  return {};
}

TEST(HostList, ReadsTheOption) {
  EXPECT_EQ(*parse_hosts("a:8,b:4"), kTwo);
  EXPECT_EQ(*parse_hosts(" a , user.x@b-1.example.com:2"),
            (Hosts{{"a", {}}, {"user.x@b-1.example.com", 2}}));
  EXPECT_EQ(*parse_hosts("[fd00::1]:8,me@[fd00::2],10.0.0.5:1"),
            (Hosts{{"fd00::1", 8}, {"me@fd00::2", {}}, {"10.0.0.5", 1}}));
  EXPECT_EQ((Host{"me@b", {}}).name(), "b");
}

TEST(HostList, ReadsEachFormatOfHostfiles) {
  EXPECT_EQ(file("a slots=8\nb slots=4\n"), kTwo);
  EXPECT_EQ(file("a:8\nb:4"), kTwo);
  EXPECT_EQ(file("# nodes\n\na slots=8   # first\n\tb\tslots=4 max_slots=4\r\n"), kTwo);
  EXPECT_EQ(file("a\nb max-slots=2\n"), (Hosts{{"a", {}}, {"b", {}}}));
}

TEST(HostList, ErrorsOfTheOptionNameTheEntryAndTheRemedy) {
  EXPECT_TRUE(holds(error_of_hosts("a:1,a:2"), "host a is in the list twice"));
  EXPECT_TRUE(holds(error_of_hosts("a,me@a"), "give it once with the sum of its slots"));
  EXPECT_TRUE(holds(error_of_hosts("a:0"), "0 slots start no worker there"));
  EXPECT_TRUE(holds(error_of_hosts(""), "--hosts names no host"));
  EXPECT_TRUE(holds(error_of_hosts("a,,b"), "a host is empty"));
  for (const char* list : {"a:x", "a:", "a:-1", "a:4097", "a:99999999999", "a: 8"})
    EXPECT_TRUE(holds(error_of_hosts(list), "is no number of slots")) << list;
  for (const char* list : {"-oProxyCommand=x", "a b", "a;b", "me@-a", "-me@a", "@a", "a@b@c"})
    EXPECT_TRUE(holds(error_of_hosts(list), "is no host")) << list;
  EXPECT_TRUE(holds(error_of_hosts("fd00::1"), "write an IPv6 address in brackets"));
  EXPECT_TRUE(holds(error_of_hosts("[fd00::1]8"), "write [fd00::1]:8"));
}

TEST(HostList, ErrorsOfAFileNameTheLine) {
  EXPECT_TRUE(holds(error_of_file("a\n\na slots=2\n"), "hosts.txt line 3: host a is in the list"));
  EXPECT_TRUE(holds(error_of_file("a slots=0"), "hosts.txt line 1: 0 slots"));
  EXPECT_TRUE(holds(error_of_file("a slots=two"), "line 1: 'two' is no number of slots"));
  EXPECT_TRUE(holds(error_of_file("a:2 slots=2"), "the slots are given twice"));
  EXPECT_TRUE(holds(error_of_file("a slots 2"), "'slots' is not known"));
  EXPECT_TRUE(holds(error_of_file("a gpus=2"), "a line is HOST, HOST slots=8 or HOST:8"));
  EXPECT_TRUE(holds(error_of_file("a max_slots=x"), "is no number of slots"));
  EXPECT_TRUE(holds(error_of_file("# nothing\n"), "hosts.txt names no host"));
}

TEST(HostList, HasLimits) {
  std::string text;
  for (size_t i = 0; i < limits::kSshHosts; ++i) text += "n" + std::to_string(i) + "\n";
  EXPECT_EQ(file(text).size(), limits::kSshHosts);
  EXPECT_TRUE(holds(error_of_file(text + "more\n"), "line 1025: the list has more than 1024"));
  EXPECT_TRUE(holds(error_of_file(std::string(limits::kHostfileBytes + 1, '\n')), "no hostfile"));
}

TEST(HostList, SelectsWholeHosts) {
  const Hosts three = {{"a", 1}, {"me@b", 2}, {"c", {}}};
  EXPECT_EQ(*select_hosts(three, "", ""), three);
  EXPECT_EQ(*select_hosts(three, "c@a", ""), (Hosts{{"a", 1}, {"c", {}}}));
  EXPECT_EQ(*select_hosts(three, "", "a,b"), (Hosts{{"c", {}}}));
  const auto error = [&](const char* include, const char* exclude) {
    const Result<Hosts> hosts = select_hosts(three, include, exclude);
    return hosts ? "accepted" : hosts.error().text;
  };
  EXPECT_TRUE(holds(error("a", "b"), "give one of them"));
  EXPECT_TRUE(holds(error("a:0,2", ""), "single slots (host:0,1) are refused"));
  EXPECT_TRUE(holds(error("", "d"), "host 'd' is not in the list"));
  EXPECT_TRUE(holds(error("", "a,b,c"), "no host is left"));
}

}  // namespace
}  // namespace cpprun::ssh
