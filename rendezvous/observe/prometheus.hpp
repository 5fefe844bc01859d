// Prometheus' text format and OpenMetrics, written family by family: help and type once, then a
// line per series. The names of the series are the same in both. Label values are escaped, so they
// may hold anything. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cpprun::prometheus {

// Names and values.
using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

enum class Format { Prometheus, OpenMetrics };

// The format for a client with this Accept header; "": it sent none.
Format format_for(std::string_view accept);
const char* media_type(Format format);

class Text {
 public:
  explicit Text(Format format = Format::Prometheus) : format_(format) {}

  // Begins a family, to which the following series belong. `kind` is gauge, counter, histogram or
  // info. A counter ends in _total, an info in _info, and a family of seconds in _seconds.
  void family(std::string_view name, std::string_view kind, std::string_view help);
  void series(const Labels& labels, int64_t value) { line("", labels, std::to_string(value)); }
  // `suffix` as in _bucket, _sum, _count of a histogram.
  void part(std::string_view suffix, const Labels& labels, double value);
  // Of a histogram: the text of an upper bound.
  std::string bound(double value) const;

  std::string take() { return std::move(out_); }

 private:
  void line(std::string_view suffix, const Labels& labels, std::string_view value);
  void describe(std::string_view name, std::string_view kind, std::string_view help);

  const Format format_;
  std::set<std::string, std::less<>> families_;  // OpenMetrics: their names so far
  std::string name_;
  std::string out_;
};

// The shortest text that parses to the same number: "0.25", "10".
std::string number(double value);

}  // namespace cpprun::prometheus
