#include "launcher/report/report_page.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "common/limits/tools.hpp"
#include "common/text.hpp"

namespace cpprun::ctl {
namespace {

constexpr std::string_view kStyle =
    "body{font:14px/1.5 system-ui,sans-serif;max-width:110ch;margin:24px auto;padding:0 16px}"
    "h1{font-size:20px}h2{font-size:14px;margin:20px 0 4px}"
    "pre{background:#f6f6f3;padding:8px 12px;overflow-x:auto;font:12px/1.5 monospace;margin:0}";

constexpr std::array<std::string_view, 7> kSecretParts{"key",  "token", "secret", "passw",
                                                       "cred", "auth",  "private"};
constexpr std::array<std::string_view, 17> kShownPrefixes{
    "PET_", "CPPRUN_", "NCCL_",   "GLOO_",   "TORCH_", "TORCHELASTIC_", "CUDA_",  "OMP_",  "UCX_",
    "FI_",  "RANK",    "MASTER_", "NVIDIA_", "SLURM_", "LOCAL_",        "WORLD_", "PYTHON"};

bool speaks_of_secret(std::string_view name) {
  std::string low(name);
  std::ranges::transform(low, low.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::ranges::any_of(
      kSecretParts, [&](std::string_view part) { return low.find(part) != std::string::npos; });
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

}  // namespace

void ReportPage::add(const std::string& heading, std::string_view text, size_t most) {
  if (text.empty()) return;
  std::string kept;
  if (text.size() > most) {
    text.remove_prefix(text.size() - most);
    const size_t line = text.find('\n');
    if (line != std::string_view::npos) text.remove_prefix(line + 1);
    kept = "... the beginning is left out\n";
  }
  kept += text::printable(text);
  sections_.push_back({heading, std::move(kept)});
}

std::string ReportPage::html() const {
  std::string page = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<title>" +
                     escaped(title_) + "</title>\n<style>" + std::string(kStyle) +
                     "</style></head><body>\n<h1>" + escaped(title_) + "</h1>\n";
  for (const Section& section : sections_) {
    const std::string text = escaped(section.text);
    const bool fits = page.size() + text.size() <= limits::kReportBytes;
    page += "<h2>" + escaped(section.heading) + "</h2>\n<pre>" +
            (fits ? text : "left out: the report is full") + "</pre>\n";
  }
  return page + "</body></html>\n";
}

std::string masked_command(const std::vector<std::string>& words) {
  std::string line;
  bool is_value = false;  // of the secret that the last word named
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    const bool is_named = speaks_of_secret(std::string_view(word).substr(0, equals));
    const bool has_name = word.starts_with('-') || equals != std::string::npos;
    std::string shown = is_value ? "***" : word;
    if (!is_value && is_named && has_name && equals != std::string::npos) {
      shown = word.substr(0, equals + 1) + "***";
    }
    is_value = !is_value && is_named && word.starts_with('-') && equals == std::string::npos;
    line += (line.empty() ? "" : " ") + shown;
  }
  return line;
}

std::string shown_variables(const std::vector<std::string>& variables) {
  std::vector<std::string> shown;
  for (const std::string& variable : variables) {
    const std::string_view name = std::string_view(variable).substr(0, variable.find('='));
    const bool is_of_job = std::ranges::any_of(
        kShownPrefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
    if (is_of_job && !speaks_of_secret(name)) shown.push_back(variable);
  }
  std::ranges::sort(shown);
  return text::join(shown, "\n");
}

}  // namespace cpprun::ctl
