// Resolves arguments, URL and environment into a plan of how the ranks rendezvous. Private to dist.
//
// Pure: opens no socket and no file. Arguments take precedence over the URL, the URL over the
// environment.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "cpprun/dist/process_group.hpp"
#include "cpprun/worker/environment.hpp"

namespace cpprun::dist {

using EnvLookup = worker::Lookup;
using worker::own_variable;  // not worker::environment(): programs set MASTER_ADDR before init

// Parses the text of an argument or a variable. Throws DistArgumentError with `call`, the text and
// `from`, where it stands.
int whole_number(const std::string& call, const std::string& value, const std::string& from);

struct InitUrl {
  std::string scheme;                        // "env", "tcp" or "file"
  std::string host;                          // without brackets
  int port = -1;                             // -1: none
  std::string path;                          // of file://
  std::map<std::string, std::string> query;  // rank, world_size, store
};

// Parses init_method: env://, tcp://host:port?rank=0&world_size=2, file:///path. Throws
// DistArgumentError with the URL and the error.
InitUrl parse_init_url(const std::string& url);

struct InitPlan {
  enum class Method { Given, Tcp, File } method = Method::Tcp;
  std::string shown;  // "env://", for messages
  int rank = -1;
  int world_size = -1;
  std::string host;  // of the store
  int port = 0;
  bool is_hosted_elsewhere = false;  // the agent serves the store, all ranks are clients
  std::string path;                  // of the file
  std::string attempt;               // distinguishes this start of the job from earlier ones
};

// Throws DistArgumentError; the text names the missing or wrong argument or variable.
InitPlan make_init_plan(const InitOptions& options, const EnvLookup& environment);

}  // namespace cpprun::dist
