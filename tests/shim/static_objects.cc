// A C++ program whose static objects allocate aligned memory before main and free it after.
#include <cstdio>
#include <memory>
#include <vector>

struct alignas(64) Line {
  float lane[16];
};

std::vector<Line> lines(4096);
std::unique_ptr<Line[]> more(new Line[1000]);

int main() {
  lines.push_back(Line{{1}});
  std::vector<Line> local(lines.begin(), lines.end());
  std::printf("%zu %g\n", local.size(), static_cast<double>(local.at(4096).lane[0]));
}
