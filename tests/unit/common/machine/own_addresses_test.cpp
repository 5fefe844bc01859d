// Recognition of this host's own names, addresses and ports.
#include "common/machine/own_addresses.hpp"

#include <gtest/gtest.h>

namespace cpprun {
namespace {

TEST(OwnAddresses, RecognizesAddressesAndLocalhostWithoutALookup) {
  EXPECT_EQ(known_addresses("10.0.0.5"), std::vector<std::string>{"10.0.0.5"});
  EXPECT_EQ(known_addresses("fe80::1%eth0"), std::vector<std::string>{"fe80::1%eth0"});
  EXPECT_EQ(known_addresses("localhost"), (std::vector<std::string>{"127.0.0.1", "::1"}));
  EXPECT_TRUE(known_addresses("node0").empty());
}

TEST(OwnAddresses, RecognizesTheOwnNameByItsFirstLabel) {
  EXPECT_TRUE(is_same_host_name("train-0.train", "train-0"));
  EXPECT_TRUE(is_same_host_name("train-0", "train-0.example.org"));
  EXPECT_TRUE(is_same_host_name("Train-0.Train.", "train-0"));
  EXPECT_TRUE(is_same_host_name("a.example.org", "a.example.org"));
  EXPECT_FALSE(is_same_host_name("train-1.train", "train-0"));
  EXPECT_FALSE(is_same_host_name("train-01", "train-0"));
  EXPECT_FALSE(is_same_host_name("a.example.org", "a.example.com"));
  EXPECT_FALSE(is_same_host_name("", ""));
}

}  // namespace
}  // namespace cpprun
