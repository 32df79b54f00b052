// The environment variables that Reprise reads: --help names them, and doctor takes no other for one.
#pragma once

#include <string_view>

namespace reprise::cli {

struct Variable {
  std::string_view name;
  std::string_view meaning;
};

// tests/house/documented.py fails where the sources read one that --help does not name.
inline constexpr Variable kVariables[] = {
    {"REPRISE_MODE", "serve (default), record or off"},
    {"REPRISE_OUT",
     "folder for trace and summary; %h host, %p process, %r rank, %j job, %s step, %% a percent sign"},
    {"REPRISE_PLAN", "plans that an earlier run of the job has left, a file"},
    {"REPRISE_CACHE", "folder where each job leaves its plans and finds those of its last run"},
    {"REPRISE_CAPACITY", "the most memory to hold, a size; no limit by default"},
    {"REPRISE_OVERSUBSCRIBE", "1: what a CUDA device has no memory for lies in the host's, slowly"},
    {"REPRISE_THRESHOLD", "the smallest allocation that is caught, a size; 4KiB by default"},
    {"REPRISE_TRACE_LIMIT",
     "the most to write into a trace while serving, and of a time line, a size; 256MiB by default"},
    {"REPRISE_STACKS", "off (default), native or python: whose call stacks a trace keeps"},
    {"REPRISE_TIMELINE", "1: a trace on CUDA says too which kernels and copies ran when"},
    {"REPRISE_LOG", "quiet, warn (default) or info"},
    {"REPRISE_DISABLE", "1: catch nothing at all"},
    {"REPRISE_RUN",
     "a name for the job's files to carry; whoever gives it sums the ranks up, so that none does it itself "
     "(set by "
     "reprise run)"},
};

}  // namespace reprise::cli
