// Drives a fuzz target without libFuzzer: inputs drawn from a seed, some of them changed a little from the
// one before. It sees no coverage, but it runs in every build, under every sanitizer.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  const int runs = argc > 1 ? std::atoi(argv[1]) : 1000;
  std::mt19937_64 random(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
  std::vector<uint8_t> input;
  for (int run = 0; run < runs; ++run) {
    if (run % 4 == 0) {
      input.resize(random() % (run % 8 == 0 ? 40 : 400));
      for (uint8_t& byte : input) byte = static_cast<uint8_t>(random());
    }
    for (int change = 0; change < 4 && !input.empty(); ++change) {
      input[random() % input.size()] = static_cast<uint8_t>(random());
    }
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  std::printf("%d inputs\n", runs);
}
