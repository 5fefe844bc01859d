// StoreClient as a command loop, for tests in Python: one call per line on stdin, one reply per
// line on stdout.
//
//   store_client_driver ADDRESS TIMEOUT_MS CONNECT_TIMEOUT_MS PREFIX CHECKS_IN
//   > set 6b 76            words after the first are hexadecimal text, "-" is empty
//   < ok
//   > get 6b
//   < ok 76
//   > wait 100 6b6b        numbers are decimal
//   < error Timeout wait timeout after 100ms, keys: kk
//
// The first line out is the connection's own result.
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>

#include "common/text.hpp"
#include "cpprun/worker/store_client.hpp"

namespace {

using namespace cpprun;
using worker::StoreClient;
using Words = std::vector<std::string>;

std::string unhex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; hex != "-" && i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

std::string hexed(const std::string& bytes) {
  if (bytes.empty()) return "-";
  return text::hex({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

Words unhexed(const Words& words, size_t first) {
  Words all;
  for (size_t i = first; i < words.size(); ++i) all.push_back(unhex(words[i]));
  return all;
}

std::string text_of(const std::string& value) { return hexed(value); }
std::string text_of(int64_t value) { return std::to_string(value); }
std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(const Words& values) {
  std::string all;
  for (const std::string& value : values) all += (all.empty() ? "" : " ") + hexed(value);
  return all;
}

std::string shown(const Error& error) {
  static const char* const kKinds[] = {"Usage",    "BadValue", "System", "Network",
                                       "Protocol", "Timeout",  "Refused"};
  return "error " + std::string(kKinds[static_cast<int>(error.kind)]) + " " + error.text;
}
std::string shown(const Status& status) { return status ? "ok" : shown(status.error()); }
template <class T>
std::string shown(const Result<T>& result) {
  return result ? "ok " + text_of(*result) : shown(result.error());
}

using Verb = std::function<std::string(StoreClient&, const Words&)>;

// w[0] is the verb itself.
const std::map<std::string, Verb> kVerbs = {
    {"set", [](auto& c, const Words& w) { return shown(c.set(unhex(w[1]), unhex(w[2]))); }},
    {"set_long",
     [](auto& c, const Words& w) {
       return shown(c.set(unhex(w[1]), std::string(std::stoull(w[2]), 'x')));
     }},
    {"get", [](auto& c, const Words& w) { return shown(c.get(unhex(w[1]))); }},
    {"get_size",
     [](auto& c, const Words& w) {
       Result<std::string> value = c.get(unhex(w[1]));
       return value ? "ok " + std::to_string(value->size()) : shown(value);
     }},
    {"add", [](auto& c, const Words& w) { return shown(c.add(unhex(w[1]), std::stoll(w[2]))); }},
    {"compare_set",
     [](auto& c, const Words& w) {
       return shown(c.compare_set(unhex(w[1]), unhex(w[2]), unhex(w[3])));
     }},
    {"wait",
     [](auto& c, const Words& w) {
       return shown(c.wait(unhexed(w, 2), std::chrono::milliseconds(std::stoll(w[1]))));
     }},
    {"check", [](auto& c, const Words& w) { return shown(c.check(unhexed(w, 1))); }},
    {"delete_key", [](auto& c, const Words& w) { return shown(c.delete_key(unhex(w[1]))); }},
    {"num_keys", [](auto& c, const Words&) { return shown(c.num_keys()); }},
    {"append", [](auto& c, const Words& w) { return shown(c.append(unhex(w[1]), unhex(w[2]))); }},
    {"multi_get", [](auto& c, const Words& w) { return shown(c.multi_get(unhexed(w, 1))); }},
    {"multi_set",
     [](auto& c, const Words& w) {
       Words flat = unhexed(w, 1);
       std::vector<std::pair<std::string, std::string>> pairs;
       for (size_t i = 0; i + 1 < flat.size(); i += 2) pairs.emplace_back(flat[i], flat[i + 1]);
       return shown(c.multi_set(pairs));
     }},
    {"queue_push",
     [](auto& c, const Words& w) { return shown(c.queue_push(unhex(w[1]), unhex(w[2]))); }},
    {"queue_pop",
     [](auto& c, const Words& w) { return shown(c.queue_pop(unhex(w[1]), w[2] == "block")); }},
    {"queue_len", [](auto& c, const Words& w) { return shown(c.queue_len(unhex(w[1]))); }},
    {"barrier",
     [](auto& c, const Words& w) { return shown(c.barrier(unhex(w[1]), std::stoi(w[2]))); }},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  worker::StoreClientOptions options;
  options.timeout = std::chrono::milliseconds(std::stoll(argv[2]));
  options.connect_timeout = std::chrono::milliseconds(std::stoll(argv[3]));
  options.prefix = argv[4];
  options.checks_in = std::string(argv[5]) == "1";
  Result<StoreClient> client = StoreClient::connect(argv[1], options);
  std::cout << (client ? "ok" : shown(client.error())) << '\n' << std::flush;
  if (!client) return 1;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream stream(line);
    Words words;
    for (std::string word; stream >> word;) words.push_back(word);
    std::cout << kVerbs.at(words.at(0))(*client, words) << '\n' << std::flush;
  }
}
