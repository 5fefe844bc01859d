#include "launcher/ssh/plan/host_list.hpp"

#include <algorithm>
#include <set>

#include "common/endpoint.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/limits/ssh.hpp"
#include "common/text.hpp"

namespace cpprun::ssh {
namespace {

using Hosts = std::vector<Host>;

// Where an entry stands, for errors: "--hosts=a:0", "hosts.txt line 3".
struct Place {
  std::string text;
  Error error(const std::string& why) const {
    return Error{ErrorKind::BadValue, text + ": " + why};
  }
};

std::string quoted(std::string_view token) {
  return "'" + text::one_line(token, limits::kShownListBytes) + "'";
}

Result<int> parse_slots(std::string_view token, const Place& place) {
  constexpr size_t kDigits = 9;
  const bool is_number = !token.empty() && token.size() <= kDigits &&
                         token.find_first_not_of("0123456789") == std::string_view::npos;
  const int64_t number = is_number ? text::parse_int(token).value_or(-1) : -1;
  if (number == 0) {
    return place.error(
        "0 slots start no worker there\nhint: leave the host out, or write 1 or more");
  }
  if (number < 0 || number > limits::kWorkersPerNode) {
    return place.error(quoted(token) + " is no number of slots\nhint: write 1 to " +
                       std::to_string(limits::kWorkersPerNode));
  }
  return static_cast<int>(number);
}

bool is_user(std::string_view user) {
  const auto is_fit = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  return !user.empty() && user.front() != '-' && std::ranges::all_of(user, is_fit);
}

// A host must not look like an option of ssh.
Result<std::string> parse_target(std::string_view token, const Place& place) {
  const size_t at = token.find('@');
  const std::string_view host = at == std::string_view::npos ? token : token.substr(at + 1);
  const bool has_good_user = at == std::string_view::npos || is_user(token.substr(0, at));
  const bool is_good = has_good_user && is_host(host) && host.front() != '-';
  if (is_good && token.size() <= limits::kNameBytes) return std::string(token);
  return place.error(quoted(token) +
                     " is no host\nhint: write a name or an address, such as node1, " +
                     "user@node1, 10.0.0.5 or [fd00::1]");
}

// "a", "a:8", "[fd00::1]:8", "user@[fd00::1]".
Result<Host> parse_host(std::string_view token, const Place& place) {
  Host host;
  std::string target(token);
  std::string_view slots;
  const size_t close = token.find(']');
  const size_t open = token.find('[');
  if (open != std::string_view::npos && close != std::string_view::npos && open < close) {
    slots = token.substr(close + 1);
    target =
        std::string(token.substr(0, open)) + std::string(token.substr(open + 1, close - open - 1));
  } else if (const size_t colon = token.find(':'); colon != std::string_view::npos) {
    if (token.find(':', colon + 1) != std::string_view::npos) {
      return place.error(
          quoted(token) +
          " has several colons\nhint: write an IPv6 address in brackets: [fd00::1]:8");
    }
    slots = token.substr(colon);
    target = token.substr(0, colon);
  }
  if (!slots.empty() && slots.front() != ':')
    return place.error(quoted(token) + " is no host\nhint: write [fd00::1]:8");
  Result<std::string> good = parse_target(target, place);
  if (!good) return good.error();
  host.target = std::move(*good);
  if (slots.empty()) return host;
  Result<int> number = parse_slots(slots.substr(1), place);
  if (!number) return number.error();
  host.slots = *number;
  return host;
}

Status add(Host host, const Place& place, Hosts& hosts, std::set<std::string>& names) {
  if (!names.insert(host.name()).second) {
    return place.error("host " + host.name() +
                       " is in the list twice; one cpprun starts all workers of a host, so give it "
                       "once with the sum of its slots");
  }
  if (hosts.size() == limits::kSshHosts) {
    return place.error("the list has more than " + std::to_string(limits::kSshHosts) +
                       " hosts\nhint: start such jobs by a scheduler");
  }
  hosts.push_back(std::move(host));
  return {};
}

std::vector<std::string> words_of(std::string line) {
  std::ranges::replace(line, '\t', ' ');
  std::ranges::replace(line, '\r', ' ');
  return text::words(line);
}

// A setting of OpenMPI's or DeepSpeed's line: "slots=8", "max_slots=8".
Status read_setting(const std::string& word, const Place& place, Host& host) {
  const size_t equals = word.find('=');
  const std::string key = word.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
  if (key == "max_slots" || key == "max-slots") {  // checked only: the slots are the workers
    Result<int> unused = parse_slots(value, place);
    return unused ? Status() : unused.error();
  }
  if (key != "slots" || equals == std::string::npos) {
    return place.error(quoted(word) + " is not known; a line is HOST, HOST slots=8 or HOST:8");
  }
  if (host.slots) return place.error("the slots are given twice\nhint: write them once");
  Result<int> slots = parse_slots(value, place);
  if (!slots) return slots.error();
  host.slots = *slots;
  return {};
}

Result<Hosts> none(const std::string& where) {
  return Error{ErrorKind::BadValue, where + " names no host\nhint: write one such as node1:8"};
}

}  // namespace

std::string Host::name() const { return target.substr(target.find('@') + 1); }

Result<std::vector<Host>> parse_hosts(std::string_view list) {
  const Place place{"--hosts=" + text::one_line(list, limits::kShownListBytes)};
  if (text::strip(list).empty()) return none("--hosts");
  Hosts hosts;
  std::set<std::string> names;
  for (const std::string& entry : text::split(list, ',')) {
    const std::string_view token = text::strip(entry);
    if (token.empty()) return place.error("a host is empty\nhint: remove the comma");
    Result<Host> host = parse_host(token, place);
    if (!host) return host.error();
    if (Status ok = add(std::move(*host), place, hosts, names); !ok) return ok.error();
  }
  return hosts;
}

Result<std::vector<Host>> parse_hostfile(std::string_view text, const std::string& file) {
  if (text.size() > limits::kHostfileBytes) {
    return Error{ErrorKind::BadValue, file + " is longer than " +
                                          std::to_string(limits::kHostfileBytes >> 20) +
                                          " MiB, so it is no hostfile"};
  }
  Hosts hosts;
  std::set<std::string> names;
  size_t number = 0;
  for (const std::string& line : text::split(text, '\n')) {
    const Place place{file + " line " + std::to_string(++number)};
    const std::vector<std::string> words = words_of(line.substr(0, line.find('#')));
    if (words.empty()) continue;
    Result<Host> host = parse_host(words.front(), place);
    if (!host) return host.error();
    for (size_t i = 1; i < words.size(); ++i) {
      if (Status ok = read_setting(words[i], place, *host); !ok) return ok.error();
    }
    if (Status ok = add(std::move(*host), place, hosts, names); !ok) return ok.error();
  }
  if (hosts.empty()) return none(file);
  return hosts;
}

Result<std::vector<Host>> select_hosts(std::vector<Host> hosts, std::string_view include,
                                       std::string_view exclude) {
  if (include.empty() && exclude.empty()) return hosts;
  const bool includes = !include.empty();
  const std::string option = includes ? "--include" : "--exclude";
  if (includes && !exclude.empty()) {
    return Error{ErrorKind::BadValue,
                 "--include and --exclude are two ways for the same\nhint: give one of them"};
  }
  std::string list(includes ? include : exclude);
  const Place place{option + "=" + text::one_line(list, limits::kShownListBytes)};
  std::ranges::replace(list, '@', ',');
  std::set<std::string> chosen;
  for (const std::string& entry : text::split(list, ',')) {
    const std::string name(text::strip(entry));
    if (name.find(':') != std::string::npos) {
      return place.error(
          "single slots (host:0,1) are refused: cpprun selects whole hosts; to use fewer GPUs "
          "change the host's slots, or set CUDA_VISIBLE_DEVICES with -x");
    }
    const auto is_it = [&](const Host& host) { return host.name() == name; };
    if (std::ranges::none_of(hosts, is_it)) {
      return place.error("host " + quoted(name) + " is not in the list of hosts");
    }
    chosen.insert(name);
  }
  std::erase_if(hosts, [&](const Host& host) { return chosen.contains(host.name()) != includes; });
  if (hosts.empty()) return place.error("no host is left");
  return hosts;
}

}  // namespace cpprun::ssh
