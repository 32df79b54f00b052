// The folder of plans that the ranks of a job share, and its next run finds. Made for file systems shared by
// many machines: files come to be by rename alone, are told by what they hold, and nobody waits for anybody.
//
//   <job>.rank3.entry     what rank 3 of the job was served by: names a file of plans, with a checksum
//   <plans>.plans.json    plans by the hash of job, sequence and what stays of the start (saved_plan.h): of all ranks with
//                         these
//   <plans>.lease         somebody is laying these plans, or has died in doing so
//
// Whoever finds a lease leaves the laying to its holder and only writes an entry. So of the ranks with one
// sequence one lays the plans; after kLeaseSeconds without them the lease counts as abandoned, and the next
// one that ends lays them. Two may then do so at once: that costs their time, never a file.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "replay/saved_plan.h"
#include "replay/sequence.h"

namespace reprise::replay {

class PlanCache {
 public:
  static constexpr int kLeaseSeconds = 60;

  PlanCache(std::string folder, JobSignature job, int rank)
      : folder_(std::move(folder)), job_(std::move(job)), rank_(rank) {}

  std::string EntryPath() const;

  // The file of plans that this rank was served by. NotFound: it has left none. InvalidArgument: the entry is
  // damaged.
  absl::StatusOr<std::string> Find() const;

  struct Left {
    std::string text;  // of the plans; empty: another rank is laying them
    std::string path;  // empty: there is nothing that could be laid
  };
  // Leaves what this rank has learnt: takes the plans that are there, or lays them in up to `seconds`. Errors
  // name the path.
  absl::StatusOr<Left> Leave(const std::vector<Sequence::Known>& known, double seconds) const;

 private:
  absl::Status WriteEntry(const std::string& plans) const;

  const std::string folder_;
  const JobSignature job_;
  const int rank_;
};

}  // namespace reprise::replay
