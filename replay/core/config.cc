#include "replay/core/config.h"

#include <fmt/format.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "base/sizes.h"

namespace reprise::replay {
namespace {

constexpr size_t kMostRunName = 128;  // it stands in every file

// Names come from schedulers and may hold anything; a folder's name may not, and ".." leads to another folder.
std::string AsFileName(std::string_view text) {
  std::string name(text);
  const bool dots = name.find_first_not_of('.') == name.npos;
  for (char& c : name) {
    const bool plain = absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
    if (!plain || dots) c = '_';
  }
  return name;
}

// Reads the variables one by one and keeps what is wrong with them.
class Reader {
 public:
  Reader(const Lookup& lookup, Config* config) : lookup_(lookup), config_(config) {}

  // The value where it is set and not empty.
  std::optional<std::string_view> Text(const char* name) const {
    const char* value = lookup_(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  }

  template <typename Value>
  void Word(const char* name, std::initializer_list<std::pair<std::string_view, Value>> words, Value* value,
            std::string_view default_word) {
    const auto text = Text(name);
    if (!text) return;
    std::string known;
    for (const auto& [word, meaning] : words) {
      if (*text == word) {
        *value = meaning;
        return;
      }
      known.append(known.empty() ? "" : ", ").append(word);
    }
    Complain(name, *text, "is not one of " + known, default_word);
  }

  void Size(const char* name, Bytes* value, std::string_view default_word) {
    const auto text = Text(name);
    if (!text) return;
    const std::optional<Bytes> bytes = ParseWholeSize(*text);
    if (bytes && bytes->count() > 0) {
      *value = *bytes;
    } else {
      Complain(name, *text,
               IsMoreThanFits(*text) ? "is too large: a size is below 8EiB"
                                     : "is not a whole size above 0 such as 64KiB",
               default_word);
    }
  }

  void Complain(std::string_view name, std::string_view text, std::string_view what,
                std::string_view instead) {
    config_->complaints.push_back(fmt::format("{}='{}' {}; using {}", name, text, what, instead));
  }

 private:
  const Lookup& lookup_;
  Config* config_;
};

}  // namespace

std::optional<std::string> ExpandOut(std::string_view pattern, const ProcessNames& names) {
  std::string path;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      path += pattern[i];
      continue;
    }
    switch (++i < pattern.size() ? pattern[i] : '\0') {
      case 'h':
        path += AsFileName(names.host);
        break;
      case 'p':
        path += std::to_string(names.pid);
        break;
      case 'r':
        path += std::to_string(names.launched.rank);
        break;
      case 'j':
        path += AsFileName(names.launched.job);
        break;
      case 's':
        path += AsFileName(names.launched.step);
        break;
      case '%':
        path += '%';
        break;
      default:
        return std::nullopt;
    }
  }
  return path;
}

std::string RunName(std::string_view given) {
  std::string name(given.substr(0, kMostRunName));
  for (char& c : name) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

ProcessNames NamesOfThisProcess(const Lookup& lookup) {
  ProcessNames names;
  char host[256] = "";
  if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') host[0] = '0';
  names.host = host;
  names.pid = getpid();
  names.launched = LaunchedBy(lookup);
  return names;
}

Config ReadConfig(const Lookup& lookup, const ProcessNames& names) {
  Config config;
  Reader read(lookup, &config);
  read.Word<Mode>("REPRISE_MODE", {{"serve", Mode::kServe}, {"record", Mode::kRecord}, {"off", Mode::kOff}},
                  &config.mode, "serve");
  read.Word<LogLevel>("REPRISE_LOG",
                      {{"quiet", LogLevel::kQuiet}, {"warn", LogLevel::kWarn}, {"info", LogLevel::kInfo}},
                      &config.log, "warn");
  read.Size("REPRISE_CAPACITY", &config.capacity, "no limit");
  read.Size("REPRISE_TRACE_LIMIT", &config.trace_limit, "256MiB");
  Bytes threshold;  // read by the preload library; here only to say what it did not understand
  read.Size("REPRISE_THRESHOLD", &threshold, "4KiB");
  read.Word<Stacks>("REPRISE_STACKS",
                    {{"off", Stacks::kOff}, {"native", Stacks::kNative}, {"python", Stacks::kPython}},
                    &config.stacks, "off");
  read.Word<bool>("REPRISE_TIMELINE", {{"0", false}, {"1", true}}, &config.timeline, "0");
  read.Word<bool>("REPRISE_OVERSUBSCRIBE", {{"0", false}, {"1", true}}, &config.oversubscribe, "0");
  if (const auto run = read.Text("REPRISE_RUN")) config.run = RunName(*run);
  if (const auto plan = read.Text("REPRISE_PLAN")) config.plan = *plan;
  if (const auto cache = read.Text("REPRISE_CACHE")) config.cache = *cache;
  if (config.mode == Mode::kRecord) config.out = "reprise-out";
  if (const auto out = read.Text("REPRISE_OUT")) {
    if (const auto path = ExpandOut(*out, names)) {
      config.out = *path;
    } else {
      read.Complain("REPRISE_OUT", *out, "has a % that is none of %h, %p, %r, %j, %s, %%",
                    config.out.empty() ? "no files" : config.out);
    }
  }
  constexpr std::string_view kNoTrace = "needs REPRISE_OUT for the trace that it goes into";
  if (config.timeline && config.out.empty()) {
    read.Complain("REPRISE_TIMELINE", "1", kNoTrace, "0");
    config.timeline = false;
  }
  if (config.stacks != Stacks::kOff && config.out.empty()) {
    read.Complain("REPRISE_STACKS", *read.Text("REPRISE_STACKS"), kNoTrace, "off");
    config.stacks = Stacks::kOff;
  }
  if (config.mode == Mode::kRecord && !config.plan.empty()) {
    read.Complain("REPRISE_PLAN", config.plan, "is not followed where REPRISE_MODE is record", "none");
    config.plan.clear();
  }
  if (names.launched.OneOfMany()) {
    ProcessNames other = names;
    other.launched.rank = names.launched.rank == 0 ? 1 : 0;
    const std::string_view out = read.Text("REPRISE_OUT").value_or("");
    if (ExpandOut(out, names) == ExpandOut(out, other))
      config.label = fmt::format("rank{}", names.launched.rank);
    config.quiet_rank = names.launched.rank != 0 || !config.run.empty();
  }
  // Behind the rank: the job runs again under its number, and finds what it left before.
  if (names.launched.restart > 0) {
    config.label += fmt::format("{}restart{}", config.label.empty() ? "" : ".", names.launched.restart);
  }
  return config;
}

}  // namespace reprise::replay
