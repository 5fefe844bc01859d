// TempFolder: a temporary folder of one test; the destructor removes it.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

namespace cpprun::test {

class TempFolder {
 public:
  // `above`: the parent folder; empty: the default one.
  explicit TempFolder(std::string above = "") {
    if (above.empty()) above = testing::TempDir();
    std::string name = above + "/cpprun-test-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace cpprun::test
