// One of two clients of a TCP store; twin: twins/store_calls.py.
#include <string>

#include "cpprun/dist/store.hpp"
#include "tests/sdk/dist/init_support.hpp"

namespace cpprun::test {
namespace {

std::string shown(bool value) { return value ? "True" : "False"; }

// Makes every call once and returns the results.
void make_calls(dist::Store& store, const std::string& me) {
  const std::string own = me + "/";
  store.set(own + "text", std::string("a\0b", 3));
  print_line(me + " get " + std::to_string(store.get(own + "text").size()));
  const int64_t five = store.add(own + "n", 5);
  print_line(me + " add " + std::to_string(five + store.add(own + "n", -2)));
  const auto made = store.compare_set(own + "c", "", "first");
  const auto kept = store.compare_set(own + "c", "other", "second");
  print_line(me + " compare_set " + made + " " + kept + " " +
             store.compare_set(own + "c", "first", "third"));
  store.append(own + "text", "more");
  store.multi_set({own + "x", own + "y"}, {"1", "2"});
  const auto both = store.multi_get({own + "x", own + "y"});
  print_line(me + " multi " + both[0] + both[1]);
  print_line(me + " check " + shown(store.check({own + "x"})) + " " +
             shown(store.check({own + "z"})));
  const bool was_there = store.delete_key(own + "x");
  print_line(me + " delete " + shown(was_there) + " " + shown(store.delete_key(own + "x")));
}

void read_values(dist::Store& store, const std::string& me, const std::string& other) {
  store.wait({other + "/done"});
  const auto text = store.get(other + "/text");
  print_line(me + " reads " + text.substr(3) + " " + store.get(other + "/n") + " " +
             store.get(other + "/c"));
}

}  // namespace

SDK_CASE(store_calls) {  // store_calls PORT
  return printing_errors([&] {
    const bool is_server = launched_rank() == "0";
    const std::string me = is_server ? "server" : "client";
    const std::string other = is_server ? "client" : "server";
    auto store = dist::make_tcp_store("127.0.0.1", std::stoi(args.at(0)), 2, is_server,
                                      std::chrono::seconds(20));
    make_calls(store, me);
    store.set(me + "/done", "1");
    read_values(store, me, other);
    store.set(me + "/left", "1");
    if (is_server) store.wait({other + "/left"});
  });
}

SDK_CASE(store_timeout) {
  return printing_errors([] {
    auto store = dist::make_tcp_store("127.0.0.1", 0, 1, true);
    if (dist::tcp_store_port(store) < 1) print_line("no port");
    store.wait({"never"}, std::chrono::milliseconds(100));
  });
}

}  // namespace cpprun::test
