// Plans are read from wherever a user keeps them: what was written must come back exactly, and whatever else
// is read must give an error that names the place, never a crash.
#include "planner/plan_reader.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/planner/some_plan.h"

namespace reprise::planner {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

std::string FaultOfText(std::string_view text) {
  const auto plan = ParsePlan(text, "p.json");
  EXPECT_TRUE(absl::IsInvalidArgument(plan.status())) << plan.status();
  EXPECT_THAT(std::string(plan.status().message()), StartsWith("p.json: "));
  return std::string(plan.status().message());
}

// The fault of a good plan in which the first `from` was replaced.
std::string FaultWith(std::string_view from, std::string_view to) {
  std::string text = FormatPlan(SomePlan());
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return FaultOfText(text.replace(at, from.size(), to));
}

TEST(ParsePlan, GivesBackWhatWasFormatted) {
  const Plan plan = SomePlan();
  const auto read = ParsePlan(FormatPlan(plan), "p.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->sizes, plan.sizes);
  EXPECT_EQ(read->offsets, plan.offsets);
  EXPECT_EQ(read->slab, plan.slab);
  EXPECT_EQ(read->lower_bound, plan.lower_bound);
  EXPECT_EQ(read->proven_optimal, plan.proven_optimal);
  EXPECT_EQ(read->solver, plan.solver);
  EXPECT_EQ(read->signature, plan.signature);
  EXPECT_EQ(read->provenance.program, plan.provenance.program);
  EXPECT_EQ(read->provenance.input, plan.provenance.input);
  EXPECT_EQ(read->provenance.input_hash, plan.provenance.input_hash);
  EXPECT_EQ(read->provenance.created, plan.provenance.created);
}

TEST(ParsePlan, AnEmptyPlanIsAPlan) {
  EXPECT_TRUE(ParsePlan(FormatPlan(MakePlan({}, {}, {})), "p.json").ok());
}

TEST(ParsePlan, EveryTruncationIsAnError) {
  const std::string text = FormatPlan(SomePlan());
  EXPECT_THAT(FaultOfText(""), HasSubstr("the file is empty"));
  for (size_t length = 0; length + 2 < text.size(); ++length) FaultOfText(text.substr(0, length));
  EXPECT_THAT(FaultOfText(text.substr(0, 40)),
              AllOf(HasSubstr("byte 4"), HasSubstr("unexpected end of input")));
}

TEST(ParsePlan, NamesTheByteOfWhatIsNotJson) {
  EXPECT_THAT(FaultOfText("id,lower,upper,size\n0,1,2,3\n"), HasSubstr("byte 1: syntax error"));
  EXPECT_THAT(FaultOfText(FormatPlan(SomePlan()) + "x"), HasSubstr("byte"));
  EXPECT_THAT(FaultOfText("{\"a\": \"\xff\"}"), HasSubstr("byte 8"));
  EXPECT_THAT(FaultOfText("{\"gap\": 1e999}"), HasSubstr("number overflow"));
  EXPECT_THAT(FaultOfText("{\"gap\": NaN}"), HasSubstr("byte 9: syntax error"));
}

TEST(ParsePlan, RefusesOtherJson) {
  EXPECT_THAT(FaultOfText("[]"), HasSubstr("should be a JSON object, not an array"));
  EXPECT_THAT(FaultOfText("7"), HasSubstr("should be a JSON object, not 7"));
  EXPECT_THAT(FaultOfText("null"), HasSubstr("should be a JSON object, not null"));
  EXPECT_THAT(FaultOfText("{}"), HasSubstr("field \"format\": is not \"reprise-plan\""));
}

TEST(ParsePlan, RefusesOtherVersionsBeforeAnythingElse) {
  EXPECT_THAT(FaultOfText("{\"format\":\"reprise-plan\",\"version\":2}"),
              HasSubstr("field \"version\": is 2, this program reads 1"));
}

TEST(ParsePlan, NamesTheFieldOfAWrongType) {
  EXPECT_THAT(FaultWith("\"slab\": 8", "\"slab\": \"8\""),
              HasSubstr("field \"slab\": expected a whole number from 0 to 2^63 - 1, found a string"));
  EXPECT_THAT(FaultWith("\"slab\": 8", "\"slab\": [8]"),
              HasSubstr("field \"slab\": expected a whole number"));
  EXPECT_THAT(FaultWith("\"slab\": 8", "\"slab\": {}"), HasSubstr("found an object"));
  EXPECT_THAT(FaultWith("\"slab\": 8", "\"slab\": null"), HasSubstr("found null"));
  EXPECT_THAT(FaultWith("\"slab\": 8", "\"slab\": true"), HasSubstr("found true"));
  EXPECT_THAT(FaultWith("\"slab\": 8", "\"slab\": 8.5"), HasSubstr("found 8.5"));
  EXPECT_THAT(FaultWith("false", "0"),
              HasSubstr("field \"proven_optimal\": expected true or false, found 0"));
  EXPECT_THAT(FaultWith("\"best-fit\"", "1"), HasSubstr("field \"solver\": expected a string, found 1"));
  EXPECT_THAT(FaultWith("[4,0,16]", "4"), HasSubstr("field \"offsets\": expected an array, found 4"));
  EXPECT_THAT(FaultWith("\"provenance\": {", "\"provenance\": 3, \"x\": {"),
              HasSubstr("field \"provenance\": expected an object, found 3"));
  EXPECT_THAT(FaultWith("\"00ff\"", "[]"),
              HasSubstr("field \"provenance.input_hash\": expected a string, found an array"));
}

TEST(ParsePlan, NamesTheEntryOfAWrongOffset) {
  EXPECT_THAT(FaultWith("[4,0,16]", "[4,0,-16]"),
              HasSubstr("field \"offsets[2]\": expected a whole number from 0"));
  EXPECT_THAT(FaultWith("[4,0,16]", "[4,\"0\",16]"), HasSubstr("field \"offsets[1]\": "));
  EXPECT_THAT(FaultWith("[4,0,16]", "[4,[0],16]"), HasSubstr("field \"offsets[1]\": "));
  EXPECT_THAT(FaultWith("[4,0,16]", "[9223372036854775808,0,16]"), HasSubstr("field \"offsets[0]\": "));
  EXPECT_THAT(FaultWith("[4,0,16]", "[99999999999999999999,0,16]"), HasSubstr("field \"offsets[0]\": "));
  EXPECT_THAT(FaultWith("[4,0,16]", "[9223372036854775807,0,16]"), HasSubstr("plus the size 4 overflows"));
  EXPECT_THAT(FaultWith("[4,0,16]", "[1e30,0,16]"), HasSubstr("found 1e30"));
  EXPECT_THAT(FaultWith("[4,0,16]", "[4,0]"),
              HasSubstr("field \"offsets\": has 2 entries, but \"sizes\" has 3"));
  EXPECT_THAT(FaultWith("[4,3,8]", "[4,0,8]"), HasSubstr("field \"sizes[1]\": is 0"));
}

TEST(ParsePlan, RefusesFieldsThatContradictEachOther) {
  EXPECT_THAT(FaultWith("\"slab\": 8", "\"slab\": 25"), HasSubstr("is 25, but the buffers end at 24"));
  EXPECT_THAT(FaultWith("\"lower_bound\": 7", "\"lower_bound\": 9"), HasSubstr("9 is above the slab 8"));
  EXPECT_THAT(FaultWith("\"signature\": \"", "\"signature\": \"0"), HasSubstr("field \"signature\""));
}

TEST(ParsePlan, EveryFieldMustBeThereOnce) {
  for (const char* field : {"slab", "lower_bound", "gap", "proven_optimal", "solver", "signature", "sizes",
                            "offsets", "provenance", "program", "input", "input_hash", "created"}) {
    const std::string name = std::string("\"") + field + "\":";
    EXPECT_THAT(FaultWith(name, "\"other\":"), HasSubstr("is missing")) << field;
  }
  EXPECT_THAT(FaultWith("\"slab\": 8", "\"slab\": 8, \"slab\": 8"),
              HasSubstr("field \"slab\": appears twice"));
  EXPECT_THAT(FaultWith("\"provenance\"", "\"provenance\": {}, \"provenance\""),
              HasSubstr("field \"provenance\": appears twice"));
}

TEST(ParsePlan, SkipsFieldsItDoesNotKnow) {
  std::string text = FormatPlan(SomePlan());
  text.insert(1,
              R"("note": {"slab": [1, {"offsets": null}], "b": "c"}, "list": [[], {}, 1e5], "flag": true,)");
  text.insert(text.find("\"input\""), R"("host": ["a"], )");
  text.insert(1, R"("provenance.program": 7,)");  // no field of the object of that name
  const auto plan = ParsePlan(text, "p.json");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->slab, Bytes(8));
  EXPECT_EQ(plan->provenance.program, SomePlan().provenance.program);
}

TEST(ParsePlan, DepthCostsNothing) {
  constexpr size_t kDepth = 1000000;
  FaultOfText(std::string(kDepth, '['));
  FaultOfText("{\"a\":" + std::string(kDepth, '['));
  FaultOfText("{\"a\":" + std::string(kDepth, '[') + std::string(kDepth, ']') + "}");
  std::string objects;
  for (size_t i = 0; i < kDepth; ++i) objects += "{\"a\":";
  FaultOfText(objects);
}

}  // namespace
}  // namespace reprise::planner
