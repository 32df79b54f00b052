// What the command says: data on stdout, everything else on stderr.
//
// No colour and no progress anywhere, so that a terminal, a pipe and a file get the same and NO_COLOR is
// honoured by construction.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace reprise::cli {

// All of `data`, or an error that says why not.
absl::Status WriteStdout(std::string_view data);

// The same to the file at `path`, or to what a link there names: whole, or what was there stays. "-" is
// standard output, and an open file of ours (/dev/stdout, /dev/fd/3) is written on where it stands. `inputs`
// are what `data` was made from: where one of them is that very file, by whatever name, it is not written
// over.
absl::Status WriteOutput(const std::string& path, std::string_view data,
                         const std::vector<std::string>& inputs);

// One line on stderr that begins with "reprise: ". Failures are ignored: there is nobody left to tell.
void Say(std::string_view line);

// "reprise: next: reprise COMMAND", the last line of every command.
void SayNext(std::string_view command);

// Whether an input is what whoever started us has opened, and no name that lasts: -, /dev/stdin, or /dev/fd/63, as a
// shell writes <(command).
bool IsHandedOpen(const std::string& input);

// The same for a command that reads `input`, and on with `more`. Not of one that was handed open: nobody reads that
// again.
void SayNextOf(std::string_view command, const std::string& input, std::string_view more = "");

std::string MessageOf(const absl::Status& error);

// Says the error and returns `exit_status`.
int Fail(std::string_view error, int exit_status);
int Fail(const absl::Status& error, int exit_status);

// Writes `data` as the command's result: `exit_status`, or kUsage when stdout cannot take it.
int Finish(std::string_view data, int exit_status);

}  // namespace reprise::cli
