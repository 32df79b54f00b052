// A folder of its own for each test, removed with it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace reprise {

class TempFolder {
 public:
  TempFolder() : path_(std::filesystem::temp_directory_path() / "reprise-test-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) std::abort();
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() { std::filesystem::remove_all(path_); }

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace reprise
