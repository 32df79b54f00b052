// A straight line through measurements, and which other lines they allow.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace reprise::profiler {

struct Measurement {
  double x = 0;
  double y = 0;
  double error = 0;  // y is known to within this
};

struct Line {
  double at_zero = 0;
  double slope = 0;
  double At(double x) const { return at_zero + slope * x; }
};

struct LineFit {
  Line line;             // by least squares
  double residual = 0;   // the farthest that a measurement lies from it
  double largest_x = 0;  // of the measurements
  // Of all lines that pass every measurement within its error and the residual the extreme ones: whatever
  // grows or falls steadily with the line is largest and smallest on one of these.
  std::vector<Line> extremes;
};

Line LeastSquares(std::span<const Measurement> points);

// `points`: of at least two different x.
LineFit FitLine(std::span<const Measurement> points);

// The largest whole x at which the line is not above y; 0 when there is none from 1 on. `measured` is the largest x
// of a measurement: a line that does not rise is not taken to fall any further from there on. It has 0 when it
// is above y there too, and nullopt when not, as then no x is the largest.
std::optional<int64_t> LargestWithin(const Line& line, double y, double measured);

// The same, but that what is short of the next by no more than measurements are rounded counts as it: no larger x is
// possible.
std::optional<int64_t> MostWithin(const Line& line, double y, double measured);

}  // namespace reprise::profiler
