#include "agent/core/hangs/section_limits.hpp"

#include <algorithm>

#include "common/limits/agent.hpp"
#include "common/text.hpp"

namespace cpprun::agent {

void SectionLimits::learn(const std::vector<SectionTimes>& sections) {
  for (const SectionTimes& section : sections) {
    if (section.ended > 0) learn(section.name, section.longest);
  }
}

void SectionLimits::learn(const std::string& section, Duration longest) {
  const auto known = longest_.find(section);
  if (known != longest_.end()) {
    known->second = std::max(known->second, longest);
  } else if (longest_.size() < limits::kSectionsKnown) {
    longest_.emplace(section, longest);
  }
}

Duration SectionLimits::limit(const SectionTimes& section, Duration least, Duration unknown) const {
  if (section.limit > Duration{}) return section.limit;
  const auto known = longest_.find(section.name);
  if (known == longest_.end()) return std::max(least, unknown);
  return std::max(least, known->second * limits::kSectionFactor);
}

std::string SectionLimits::limit_text(const SectionTimes& section, Duration limit) const {
  const std::string text = "its limit is " + text::seconds(limit);
  if (section.limit > Duration{}) return text + ", given by the program";
  const auto known = longest_.find(section.name);
  if (known == longest_.end()) return text;
  return text + "; the longest so far took " + text::seconds(known->second);
}

}  // namespace cpprun::agent
