// What passes between the launcher and a relay (launcher/ssh/relay_server.hpp), in both directions:
// frames of a kind, a process and a payload. Pure.
//
// Before its first frame the relay writes a hello (control_lines.hpp). The launcher numbers the
// processes; a number is used once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace cpprun::ssh {

// The only argument of cpprun as a relay.
inline constexpr std::string_view kRelayArgument = "--ssh-relay";

struct RelayFrame {
  enum class Kind : uint8_t {
    // To the relay.
    StartAgent = 1,  // the agent of the relay's own host; payload: see start_payload()
    StartSsh,        // an ssh process
    Input,           // bytes for the process's stdin
    CloseInput,
    Kill,
    // From the relay.
    Output,
    Errors,   // bytes of its stderr
    End,      // the last frame of a process; payload: see end_payload()
    Refused,  // it was not started, for the reason in the payload; the last frame
  };
  Kind kind = Kind::Input;
  uint32_t process = 0;
  std::string_view payload;
};

std::string relay_frame(RelayFrame::Kind kind, uint32_t process, std::string_view payload = {});

// Argument words, none of which holds a zero byte.
std::string start_payload(const std::vector<std::string>& words);
std::vector<std::string> words_of_start(std::string_view payload);

// How a process ended.
struct ProcessEnd {
  int code = 0;  // 0 to 255, 128 + N after signal N
  bool was_killed = false;
  // Its end is unknown: the relay that started it cannot be reached any more.
  bool is_relay_lost = false;
};
std::string end_payload(const ProcessEnd& end);
std::optional<ProcessEnd> end_of_payload(std::string_view payload);

// Collects bytes to frames.
class RelayFrameReader {
 public:
  ~RelayFrameReader();  // the bytes may hold the job's secret
  void feed(std::string_view bytes) { received_ += bytes; }
  // Nothing: a part of the frame is missing. The payload is valid until the next call. Error
  // (Protocol): the peer does not speak this language.
  Result<std::optional<RelayFrame>> next();

 private:
  void drop(size_t bytes);

  std::string received_;
  size_t shown_ = 0;  // bytes of the frame that the last call gave out
};

}  // namespace cpprun::ssh
