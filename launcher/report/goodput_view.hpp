// The `goodput` event of an agent, read for people. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/goodput/goodput.hpp"

namespace cpprun::ctl {

struct GoodputView {
  Goodput goodput;
  std::optional<Goodput> own{};  // of this submission; nullopt: there was no other
  std::string node{};
  int64_t best_step = -1;  // the last step that any round had finished; -1: unknown
};

// Nothing if `line` is no such event.
std::optional<GoodputView> goodput_view(std::string_view line);

// A table of the phases with their shares, and a line for the whole. `is_running`: the job has not
// ended.
std::string goodput_text(const GoodputView& view, bool is_running);

}  // namespace cpprun::ctl
