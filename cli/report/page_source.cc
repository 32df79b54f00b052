#include "cli/report/page_source.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace reprise::cli {

std::string WholePage(const PageSource& source, std::string head, std::string_view data) {
  // A script element ends at the first `</script`, whatever the JSON in it means by that.
  for (size_t at = 0; (at = head.find('<', at)) != std::string::npos;) head.replace(at, 1, "\\u003c");
  std::string page;
  page.append(source.begin).append(head).append(source.middle).append(data).append(source.end);
  return page;
}

absl::Status WritePage(const std::string& path, std::string_view page) {
  const std::string beside = path + ".part";
  {
    std::ofstream out(beside, std::ios::binary | std::ios::trunc);
    out << page;
    out.close();
    if (!out) return absl::UnknownError(fmt::format("cannot write {}: {}", beside, strerror(errno)));
  }
  std::error_code error;
  std::filesystem::rename(beside, path, error);
  if (!error) return absl::OkStatus();
  std::filesystem::remove(beside, error);
  return absl::UnknownError(fmt::format("cannot write {}", path));
}

std::string TimeNow() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

}  // namespace reprise::cli
