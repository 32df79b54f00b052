#include "planner/improve.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "planner/first_fit.h"
#include "planner/orders.h"
namespace reprise::planner {
static double envd(const char* n, double d) {
  auto* p = getenv(n);
  return p ? atof(p) : d;
}
absl::Status Improve(Search& search, std::string_view name) {
  const Instance& in = search.instance();
  FirstFit ff(in);
  std::vector<int64_t> off;
  int variant = (int)envd("V", 1);
  double noise = envd("NOISE", 0.3);
  int resets = (int)envd("RESET", 50);
  int NB = (int)envd("NB", 3);
  const Order all[] = {Order::kSize,          Order::kArea,      Order::kCrowdSize,
                       Order::kCrowdLifetime, Order::kSizeClass, Order::kLifetime};
  struct Base {
    std::vector<int32_t> order;
    int64_t slab;
    std::vector<double> key;
    int fails = 0;
  };
  std::vector<Base> bases;
  for (auto o : all) {
    Base b;
    b.order = SortedBy(o, in);
    if (ff.Place(b.order, Search::kNothing, search, off) != FirstFit::Outcome::kComplete)
      return absl::OkStatus();
    b.slab = SlabOf(in, off);
    search.Offer(off, name);
    bases.push_back(b);
  }
  if (variant >= 10) {  // order by offsets of incumbent
    Base b;
    b.order = bases[0].order;
    auto& best = search.best();
    std::sort(b.order.begin(), b.order.end(),
              [&](int a, int c) { return best[a] != best[c] ? best[a] < best[c] : a < c; });
    b.slab = search.best_slab();
    bases.push_back(b);
    variant -= 10;
  }
  std::stable_sort(bases.begin(), bases.end(), [](auto& a, auto& b) { return a.slab < b.slab; });
  if ((int)bases.size() > NB) bases.resize(NB);
  std::mt19937_64 rng(search.seed());
  std::uniform_real_distribution<double> U(0, 1);
  int n = in.buffers();
  auto rebase = [&](Base& b) {
    b.key.assign(n, 0);
    for (size_t i = 0; i < b.order.size(); i++) b.key[b.order[i]] = i + 1;
    b.fails = 0;
  };
  for (auto& b : bases) rebase(b);
  long rounds = 0;
  std::vector<int32_t> order;
  std::vector<double> k(n);
  while (!search.Stop()) {
    Base& b = bases[rounds++ % bases.size()];
    order = b.order;
    if (variant == 1) {
      for (auto i : order) k[i] = b.key[i] * std::exp(noise * (2 * U(rng) - 1));
    }
    if (variant == 2) {
      k = b.key;
    }
    if (variant == 3) {
      for (auto i : order) k[i] = b.key[i] * (1 + 0.0 * U(rng));
      if (b.fails % 5 == 4)
        for (auto i : order) k[i] *= std::exp(noise * (2 * U(rng) - 1));
    }
    std::sort(order.begin(), order.end(), [&](int a, int c) { return k[a] != k[c] ? k[a] < k[c] : a < c; });
    auto r = ff.Place(order, search.best_slab() - 1, search, off);
    if (r == FirstFit::Outcome::kStopped) break;
    if (r == FirstFit::Outcome::kComplete) {
      search.Offer(off, name);
      b.order = order;
      rebase(b);
      b.slab = search.best_slab();
      continue;
    }
    b.fails++;
    if (variant >= 2) {
      b.key[ff.too_high()] *= U(rng);
      if (b.fails >= resets) rebase(b);
    }
  }
  if (getenv("DBG")) printf("   rounds %ld\n", rounds);
  return absl::OkStatus();
}
}  // namespace reprise::planner
