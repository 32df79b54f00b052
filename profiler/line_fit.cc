#include "profiler/line_fit.h"

#include <algorithm>
#include <cmath>

namespace reprise::profiler {
namespace {

// Of values that are exact but for rounding.
constexpr double kRounding = 1e-9;
// The same of one division: less than a byte of any memory.
constexpr double kLastDigits = 1e-14;

bool Passes(const Line& line, std::span<const Measurement> points, double residual) {
  return std::ranges::all_of(points, [&](const Measurement& p) {
    return std::abs(line.At(p.x) - p.y) <= p.error + residual + kRounding * std::max(1.0, std::abs(p.y));
  });
}

// `slack`: the share of x that may be missing to the next whole number.
std::optional<int64_t> WholeWithin(const Line& line, double y, double measured, double slack) {
  if (!(line.slope > 0)) {
    return line.At(measured) > y * (1 + kRounding) ? std::optional<int64_t>(0) : std::nullopt;
  }
  const double x = (y - line.at_zero) / line.slope;
  return static_cast<int64_t>(std::clamp(std::floor(x * (1 + slack)), 0.0, 1e15));
}

}  // namespace

Line LeastSquares(std::span<const Measurement> points) {
  const auto n = static_cast<double>(points.size());
  double x = 0, y = 0;
  for (const Measurement& p : points) {
    x += p.x / n;
    y += p.y / n;
  }
  double up = 0, down = 0;
  for (const Measurement& p : points) {
    up += (p.x - x) * (p.y - y);
    down += (p.x - x) * (p.x - x);
  }
  // Of values that are all the same there may be a slope by rounding alone.
  const auto [low, high] = std::ranges::minmax(points, {}, &Measurement::y);
  const double slope = high.y - low.y <= kRounding * std::abs(high.y) ? 0 : up / down;
  return {.at_zero = y - slope * x, .slope = slope};
}

LineFit FitLine(std::span<const Measurement> points) {
  LineFit fit{.line = LeastSquares(points),
              .largest_x = std::ranges::max_element(points, {}, &Measurement::x)->x};
  for (const Measurement& p : points) fit.residual = std::max(fit.residual, std::abs(fit.line.At(p.x) - p.y));
  // The lines allowed are a convex polygon, with two sides a measurement; its corners are where sides of two
  // measurements meet.
  for (const Measurement& a : points) {
    for (const Measurement& b : points) {
      if (a.x >= b.x) continue;
      for (const double up_a : {-1.0, 1.0}) {
        for (const double up_b : {-1.0, 1.0}) {
          const double y_a = a.y + up_a * (a.error + fit.residual);
          const double y_b = b.y + up_b * (b.error + fit.residual);
          const double slope = (y_b - y_a) / (b.x - a.x);
          const Line line{.at_zero = y_a - slope * a.x, .slope = slope};
          if (Passes(line, points, fit.residual)) fit.extremes.push_back(line);
        }
      }
    }
  }
  return fit;
}

std::optional<int64_t> LargestWithin(const Line& line, double y, double measured) {
  return WholeWithin(line, y, measured, kLastDigits);
}

std::optional<int64_t> MostWithin(const Line& line, double y, double measured) {
  return WholeWithin(line, y, measured, kRounding);
}

}  // namespace reprise::profiler
