// Why this exists: two lines of code under one label are taken for one, and a real change between them shows as none.
#include "profiler/site_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace reprise::profiler {
namespace {

using testing::ElementsAre;

struct Line {
  std::string file;
  int64_t line;
};

SiteTable TableOf(const std::vector<Line>& lines) {
  StackTable stacks;
  for (const Line& at : lines) {
    const FrameId frame =
        stacks.Intern({.kind = FrameKind::kPython, .function = "forward", .file = at.file, .line = at.line});
    stacks.Intern(std::vector<FrameId>{frame});
  }
  return SitesOf(stacks);
}

std::vector<std::string> LabelsOf(const SiteTable& table) {
  std::vector<std::string> labels;
  for (size_t i = 1; i < table.sites.size(); ++i) labels.push_back(table.sites[i].label);
  return labels;
}

std::vector<std::string> LabelsOf(const std::vector<Line>& lines) {
  SiteTable table = TableOf(lines);
  TellApart(std::array{&table});
  return LabelsOf(table);
}

TEST(SiteLabels, FilesOfOneNameAreToldApartByAsMuchOfTheirPathsAsThatTakes) {
  EXPECT_THAT(LabelsOf({{"/job/encoder/model.py", 27}, {"/job/decoder/model.py", 27}}),
              ElementsAre("encoder/model.py:27 forward", "decoder/model.py:27 forward"));
  EXPECT_THAT(
      LabelsOf({{"/a/net/model.py", 27}, {"/b/net/model.py", 27}, {"/b/c/model.py", 1}}),
      ElementsAre("a/net/model.py:27 forward", "b/net/model.py:27 forward", "b/c/model.py:1 forward"));
}

TEST(SiteLabels, APathMayBeTheEndOfAnother) {
  EXPECT_THAT(LabelsOf({{"model.py", 27}, {"net/model.py", 27}, {"/job/net/model.py", 27}}),
              ElementsAre("model.py:27 forward", "net/model.py:27 forward", "job/net/model.py:27 forward"));
  EXPECT_THAT(LabelsOf({{"b/model.py", 27}, {"ab/model.py", 27}}),
              ElementsAre("b/model.py:27 forward", "ab/model.py:27 forward"));
}

TEST(SiteLabels, WhatIsNotMistakenStaysShort) {
  EXPECT_THAT(LabelsOf({{"/job/model.py", 27}, {"/job/model.py", 28}, {"/job/net/train.py", 27}}),
              ElementsAre("model.py:27 forward", "model.py:28 forward", "train.py:27 forward"));
}

TEST(SiteLabels, ASiteHasOneLabelInAllTables) {
  SiteTable both = TableOf({{"/before/encoder/model.py", 27}, {"/before/decoder/model.py", 27}});
  SiteTable one = TableOf({{"/after/encoder/model.py", 28}});
  TellApart(std::array{&one});
  EXPECT_THAT(LabelsOf(one), ElementsAre("model.py:28 forward"));
  TellApart(std::array{&both, &one});
  EXPECT_THAT(LabelsOf(both), ElementsAre("encoder/model.py:27 forward", "decoder/model.py:27 forward"));
  EXPECT_THAT(LabelsOf(one), ElementsAre("encoder/model.py:28 forward"));
  EXPECT_EQ(LabelWithoutLine(one.sites[1]), LabelWithoutLine(both.sites[1]));
  TellApart(std::array{&both, &one});
  EXPECT_THAT(LabelsOf(one), ElementsAre("encoder/model.py:28 forward")) << "once more changes nothing";
}

TEST(SiteLabels, TheSameFileInTwoCheckoutsIsOne) {
  SiteTable before = TableOf({{"/before/model.py", 27}}), after = TableOf({{"/after/model.py", 27}});
  TellApart(std::array{&before, &after});
  EXPECT_EQ(LabelsOf(before), LabelsOf(after));
}

TEST(SiteLabels, WhatIsNoLineOfAFileHasNoneToLose) {
  EXPECT_EQ(LabelWithoutLine({.label = "(no stack)"}), "(no stack)");
  EXPECT_EQ(LabelWithoutLine({.label = "at::mm in PyTorch", .file = "/torch/mm.cc", .line = 3}),
            "at::mm in PyTorch");
  EXPECT_EQ(LabelWithoutLine({.label = "a/model.py:27 step", .file = "/job/a/model.py", .line = 27}),
            "a/model.py step");
}

}  // namespace
}  // namespace reprise::profiler
