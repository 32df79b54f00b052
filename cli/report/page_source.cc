#include "cli/report/page_source.h"

#include <fmt/format.h>

#include "base/units.h"
#include "cli/console.h"
#include "cli/quantity.h"

namespace reprise::cli {

std::string WholePage(const PageSource& source, std::string_view head, std::string_view data) {
  std::string page(source.begin);
  // A script element ends at the first `</script`, whatever the JSON in it means by that.
  for (const char c : head) page.append(c == '<' ? "\\u003c" : std::string_view(&c, 1));
  page.append(source.middle).append(data).append(source.end);
  return page;
}

absl::Status WritePage(const std::string& path, std::string_view page,
                       const std::vector<std::string>& inputs) {
  if (absl::Status written = WriteOutput(path, page, inputs); !written.ok()) return written;
  if (path != "-") {
    Say(fmt::format("wrote {}, {}", path, FormatSize(Bytes(static_cast<int64_t>(page.size())))));
  }
  return absl::OkStatus();
}

}  // namespace reprise::cli
