#include "cpprun/snapshot/outcome_codec.hpp"

#include "snapshot_files/pickle/pickle.hpp"

namespace cpprun::snapshot {
namespace {

using pickle::List;
using pickle::Value;

Error senseless() {
  return {ErrorKind::Protocol, "a rank's report makes no sense: do all run the same program?"};
}

}  // namespace

std::string encode(const Result<std::string>& outcome) {
  return outcome ? "+" + *outcome : "-" + outcome.error().text;
}

std::string encode(const Status& outcome) { return outcome ? "+" : "-" + outcome.error().text; }

Result<std::string> decode_outcome(const Result<std::string>& received, int from_rank) {
  if (!received) return received.error();
  if (received->starts_with('+')) return received->substr(1);
  const std::string why = received->empty() ? "no reason" : received->substr(1);
  const bool is_named = why.starts_with("rank ");
  return Error{ErrorKind::System,
               is_named ? why : "rank " + std::to_string(from_rank) + ": " + why};
}

std::string encode(const Done& done) {
  List all;
  for (const auto& crcs : done.parts) {
    List one;
    for (const uint32_t crc : crcs) one.items.emplace_back(static_cast<int64_t>(crc));
    all.items.emplace_back(std::move(one));
  }
  const List report{{std::move(all), static_cast<int64_t>(done.own_bytes),
                     static_cast<int64_t>(done.own_crc32), static_cast<int64_t>(done.fingerprint)}};
  return pickle::write(report);
}

Result<Done> decode_done(std::string_view text) {
  const Result<Value> value = pickle::read(text);
  if (!value) return value.error();
  const auto fields = pickle::unpack<List, int64_t, int64_t, int64_t>(*value);
  if (!fields) return senseless();
  const auto [parts, bytes, crc, fingerprint] = *fields;
  Done done{.parts = {},
            .own_bytes = static_cast<uint64_t>(*bytes),
            .own_crc32 = static_cast<uint32_t>(*crc),
            .fingerprint = static_cast<uint32_t>(*fingerprint)};
  for (const Value& file : parts->items) {
    const auto* crcs = file.get_if<List>();
    if (crcs == nullptr) return senseless();
    auto& own = done.parts.emplace_back();
    for (const Value& each : crcs->items) {
      const auto* number = each.get_if<int64_t>();
      if (number == nullptr) return senseless();
      own.push_back(static_cast<uint32_t>(*number));
    }
  }
  return done;
}

}  // namespace cpprun::snapshot
