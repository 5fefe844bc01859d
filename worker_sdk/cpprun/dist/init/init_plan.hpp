// Where the ranks meet, and as whom: what arguments, URL and environment come to. Private to dist.
//
// Pure: no socket, no file. Arguments beat the URL, the URL beats the environment.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "cpprun/dist/process_group.hpp"

namespace cpprun::dist {

using EnvLookup = std::function<std::optional<std::string>(const char* name)>;

struct InitUrl {
  std::string scheme;                        // "env", "tcp" or "file"
  std::string host;                          // without brackets
  int port = -1;                             // -1: none
  std::string path;                          // of file://
  std::map<std::string, std::string> query;  // rank, world_size, store
};

// Throws DistArgumentError, which names the URL and what is wrong with it.
InitUrl parse_init_url(const std::string& url);

struct InitPlan {
  enum class Method { Given, Tcp, File } method = Method::Tcp;
  std::string shown;  // "env://", for messages
  int rank = -1;
  int world_size = -1;
  std::string host;  // of the store
  int port = 0;
  bool is_hosted_elsewhere = false;  // the agent serves it: all ranks are clients
  std::string path;                  // of the file
  std::string attempt;  // what tells this start of the job from earlier ones in the same file
};

// Throws DistArgumentError for what is missing or wrong; the text names the argument or variable.
InitPlan make_init_plan(const InitOptions& options, const EnvLookup& environment);
// This process's own environment as it is now: programs set MASTER_ADDR before they start a group.
std::optional<std::string> own_environment(const char* name);

}  // namespace cpprun::dist
