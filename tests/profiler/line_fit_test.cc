// Why this exists: a batch that was said to fit and does not costs the job; one too small costs the machine.
#include "profiler/line_fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace reprise::profiler {
namespace {

using Points = std::vector<Measurement>;

// The least and the most of what the possible lines say at x.
std::pair<double, double> Range(const LineFit& fit, double x) {
  double least = fit.line.At(x), most = least;
  for (const Line& line : fit.extremes) {
    least = std::min(least, line.At(x));
    most = std::max(most, line.At(x));
  }
  return {least, most};
}

TEST(FitLine, TwoExactMeasurementsAllowOneLine) {
  const LineFit fit = FitLine(Points{{.x = 8, .y = 112}, {.x = 16, .y = 152}});
  EXPECT_DOUBLE_EQ(fit.line.slope, 5);
  EXPECT_DOUBLE_EQ(fit.line.at_zero, 72);
  EXPECT_DOUBLE_EQ(fit.residual, 0);
  EXPECT_DOUBLE_EQ(Range(fit, 100).first, 572);
  EXPECT_DOUBLE_EQ(Range(fit, 100).second, 572);
}

TEST(FitLine, AnErrorGrowsWithTheDistance) {
  const LineFit fit = FitLine(Points{{.x = 10, .y = 100, .error = 2}, {.x = 20, .y = 200, .error = 2}});
  EXPECT_DOUBLE_EQ(Range(fit, 20).first, 198);
  EXPECT_DOUBLE_EQ(Range(fit, 20).second, 202);
  EXPECT_DOUBLE_EQ(Range(fit, 40).first, 390);  // from 102 at 10 to 198 at 20
  EXPECT_DOUBLE_EQ(Range(fit, 40).second, 410);
}

TEST(FitLine, AThirdMeasurementOffTheLineIsAResidual) {
  const LineFit fit = FitLine(Points{{.x = 1, .y = 10}, {.x = 2, .y = 26}, {.x = 3, .y = 30}});
  EXPECT_DOUBLE_EQ(fit.line.slope, 10);
  EXPECT_DOUBLE_EQ(fit.residual, 4);
  EXPECT_LT(Range(fit, 6).first, 62);
  EXPECT_GT(Range(fit, 6).second, 62);
}

TEST(FitLine, AMeasurementThatAllOthersAllowNarrows) {
  const Measurement a{.x = 1, .y = 10, .error = 5}, b{.x = 2, .y = 20, .error = 5},
      c{.x = 9, .y = 90, .error = 0};
  const auto [least_of_two, most_of_two] = Range(FitLine(Points{a, b}), 9);
  const auto [least, most] = Range(FitLine(Points{a, b, c}), 9);
  EXPECT_LT(least_of_two, least - 10);
  EXPECT_GT(most_of_two, most + 10);
}

// The extremes against lines drawn at random: none that passes all measurements says more or less.
TEST(FitLine, NoPossibleLineIsOutsideTheExtremes) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> any(0, 1);
  for (int round = 0; round < 50; ++round) {
    Points points;
    for (int i = 0; i < 2 + round % 4; ++i) {
      points.push_back({.x = 1.0 + 3 * i, .y = 20 * (i + any(random)), .error = 3 * any(random)});
    }
    const LineFit fit = FitLine(points);
    ASSERT_GE(fit.extremes.size(), 1u);
    const auto [least, most] = Range(fit, 30);
    int passed = 0;
    for (int i = 0; i < 20'000; ++i) {
      const Line line{.at_zero = fit.line.at_zero + 20 * (any(random) - 0.5),
                      .slope = fit.line.slope + 4 * (any(random) - 0.5)};
      const bool passes = std::ranges::all_of(points, [&](const Measurement& p) {
        return std::abs(line.At(p.x) - p.y) <= p.error + fit.residual;
      });
      if (!passes) continue;
      ++passed;
      EXPECT_LE(line.At(30), most + 1e-6);
      EXPECT_GE(line.At(30), least - 1e-6);
    }
    if (round % 4 > 0) {
      EXPECT_GT(passed, 0);
    }
  }
}

TEST(LargestWithin, AWholeNumberThatStillFits) {
  const Line line{.at_zero = 72, .slope = 5};
  EXPECT_EQ(LargestWithin(line, 572, 16), 100);
  EXPECT_EQ(LargestWithin(line, 571.9, 16), 99);
  EXPECT_EQ(LargestWithin(line, 76.9, 16), 0);
  EXPECT_EQ(LargestWithin(line, 0, 16), 0);
}

TEST(LargestWithin, SizesOfMemoryAreExact) {
  const double gib = 1 << 30;
  const Line line{.at_zero = 7 * gib / 3, .slope = gib / 7};
  EXPECT_EQ(LargestWithin(line, line.At(483), 16), 483);
}

TEST(LargestWithin, AByteTooLittleIsTooLittle) {
  const double gib = 1 << 30;
  const Line line{.at_zero = 0, .slope = gib};
  EXPECT_EQ(LargestWithin(line, 100 * gib, 16), 100);
  EXPECT_EQ(LargestWithin(line, 100 * gib - 1, 16), 99);
  EXPECT_EQ(MostWithin(line, 100 * gib - 1, 16), 100) << "for a limit that must hold";
  EXPECT_EQ(MostWithin(line, 99.9 * gib, 16), 99);
}

TEST(LargestWithin, ALineThatDoesNotRiseHasNoLargest) {
  EXPECT_EQ(LargestWithin({.at_zero = 10, .slope = 0}, 10, 16), std::nullopt);
  EXPECT_EQ(LargestWithin({.at_zero = 10, .slope = 0}, 5, 16), 0) << "unless nothing fits";
  EXPECT_EQ(LargestWithin({.at_zero = 30, .slope = -1}, 14, 16), std::nullopt);
  EXPECT_EQ(LargestWithin({.at_zero = 30, .slope = -1}, 13, 16), 0)
      << "of what was measured; it is not seen to fall on";
}

// Such as those of six batches of a job whose peak is its optimizer's: sums of floating point do not cancel.
TEST(LeastSquares, TheSameValueEverywhereHasNoSlope) {
  for (const double y : {112.67 * (1 << 20), 1e15 + 1, 3.0}) {
    Points points;
    for (const double x : {41, 7, 14, 42, 21, 3}) points.push_back({.x = x, .y = y});
    EXPECT_EQ(LeastSquares(points).slope, 0);
  }
  EXPECT_GT(LeastSquares(Points{{.x = 1, .y = 1e9}, {.x = 2, .y = 1e9 + 512}}).slope, 0);
}

}  // namespace
}  // namespace reprise::profiler
