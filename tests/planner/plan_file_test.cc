// Plans outlive the program that wrote them: other tools read them, and a signature must say the same for
// ever.
#include "planner/plan_file.h"

#include "base/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/planner/some_plan.h"
#include "tests/temp_folder.h"

namespace reprise::planner {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class PlanFiles : public testing::Test {
 protected:
  TempFolder folder_;
};

TEST(FormatPlan, HasWhatOtherToolsReadFrom) {
  const auto json = nlohmann::json::parse(FormatPlan(SomePlan()));
  EXPECT_EQ(json["offsets"], nlohmann::json({4, 0, 16}));
  EXPECT_EQ(json["sizes"], nlohmann::json({4, 3, 8}));
  EXPECT_EQ(json["slab"], 8);
  EXPECT_EQ(json["lower_bound"], 7);
  EXPECT_NEAR(json["gap"].get<double>(), 1.0 / 7, 1e-12);
  EXPECT_EQ(json["proven_optimal"], false);
  EXPECT_EQ(json["provenance"]["input"], "a \"b\".csv");
}

TEST(Signature, ChangesWithWhatMattersAndOnlyThat) {
  EXPECT_EQ(Signature(kProblem), 0x2319ca91d324da0eu) << "must stay the same in all versions";
  Problem other = kProblem;
  other.capacity = Bytes(100);
  EXPECT_EQ(Signature(other), Signature(kProblem));
  other.period = 100;
  EXPECT_NE(Signature(other), Signature(kProblem));
  const auto changed = [](auto change) {
    Problem problem = kProblem;
    change(problem.buffers[1]);
    return Signature(problem) != Signature(kProblem);
  };
  EXPECT_TRUE(changed([](Buffer& b) { b.lower = Tick(0); }));
  EXPECT_TRUE(changed([](Buffer& b) { b.upper = Tick(4); }));
  EXPECT_TRUE(changed([](Buffer& b) { b.size = Bytes(4); }));
  EXPECT_TRUE(changed([](Buffer& b) { b.alignment = Bytes(8); }));
  EXPECT_TRUE(changed([](Buffer& b) { b.pinned = Offset(0); }));
  other.buffers[0].outside = true;
  other.buffers[1].gaps = {{Tick(1), Tick(2)}};
  EXPECT_EQ(Signature(other), 0x8a979c34ca281790u) << "must stay the same in all versions";
}

TEST(CheckPlanIsFor, NamesTheFirstDifference) {
  const Plan plan = SomePlan();
  EXPECT_TRUE(CheckPlanIsFor(kProblem, plan).ok());
  const auto fault = [&](auto change) {
    Problem problem = kProblem;
    change(problem);
    const absl::Status status = CheckPlanIsFor(problem, plan);
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    return std::string(status.message());
  };
  EXPECT_THAT(fault([](Problem& p) { p.buffers.pop_back(); }),
              HasSubstr("another input (a \"b\".csv): it has 3 buffers, this one has 2"));
  EXPECT_THAT(fault([](Problem& p) { p.buffers[1].size = Bytes(5); }),
              HasSubstr("its buffer 1 has 3 bytes, this one's has 5"));
  EXPECT_THAT(fault([](Problem& p) { p.buffers[1].upper = Tick(5); }),
              HasSubstr("the lifetimes or alignments are not"));
}

TEST(CheckPlan, RefusesAnotherInputAndPlacesThatOverlap) {
  Plan plan = SomePlan();
  EXPECT_TRUE(CheckPlan(kProblem, plan).ok()) << CheckPlan(kProblem, plan);
  plan.offsets.assign(plan.offsets.size(), Offset(0));
  EXPECT_FALSE(CheckPlan(kProblem, plan).ok());
  plan = SomePlan();
  plan.sizes[0] = plan.sizes[0] + Bytes(1);
  EXPECT_FALSE(CheckPlan(kProblem, plan).ok());
}

TEST_F(PlanFiles, GoAndComeBack) {
  ASSERT_TRUE(WriteFile(folder_ / "a.plan.json", FormatPlan(SomePlan())).ok());
  const auto plan = ReadPlan(folder_ / "a.plan.json");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->offsets, SomePlan().offsets);
  EXPECT_EQ(plan->signature, SomePlan().signature);
}

TEST_F(PlanFiles, StringsThatAreNotUtf8AreReplaced) {
  Plan plan = SomePlan();
  plan.provenance.input = "a\xff.csv";
  ASSERT_TRUE(WriteFile(folder_ / "a", FormatPlan(plan)).ok());
  EXPECT_TRUE(ReadPlan(folder_ / "a").ok());
}

TEST_F(PlanFiles, ErrorsNameTheFileAndTheReason) {
  absl::Status status = ReadPlan(folder_ / "none").status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(folder_ / "none"), HasSubstr("No such file")));
  status = ReadPlan(folder_.path()).status();
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(folder_.path()), HasSubstr("Is a directory")));
}

}  // namespace
}  // namespace reprise::planner
