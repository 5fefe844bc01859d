// JSON messages that doctors exchange through the store; and findings as text and as JSON.
// Decoding accepts any input and returns an error for malformed data.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"
#include "launcher/doctor/cross_node_checks.hpp"

namespace cpprun::ctl {

// What is printed: the findings that are not ok, all, or all as JSON.
enum class FindingsFormat { Short, Verbose, Json };

std::string encode(const doctor::NodeCard& card);
Result<doctor::NodeCard> decode_card(const std::string& json);

std::string encode(const std::vector<doctor::PairFacts>& pairs);
// For a job of `nodes` nodes.
Result<std::vector<doctor::PairFacts>> decode_pairs(const std::string& json, int64_t nodes);

// "problem  reach      n1 to n2: ...\n", with the cure on the next line.
std::string text_of(const doctor::Finding& finding);
// The findings that are not ok, or all; and a last line that counts them.
std::string text_of(const std::vector<doctor::Finding>& findings, bool is_verbose);
// Prints that text; as Json an array of {"check", "level", "text", "cure"} with all findings.
void print_findings(const std::vector<doctor::Finding>& findings, FindingsFormat format);

}  // namespace cpprun::ctl
