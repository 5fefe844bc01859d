// The goodput of a job as JSON, for --state-dir. Pure.
#pragma once

#include <string>
#include <string_view>

#include "common/goodput/goodput.hpp"
#include "common/result.hpp"

namespace cpprun {

std::string goodput_record_json(const GoodputRecord& record);
Result<GoodputRecord> parse_goodput_record(std::string_view text);

}  // namespace cpprun
