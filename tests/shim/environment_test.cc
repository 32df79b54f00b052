// The thin library reads sizes by hand and the core reads them again to say what is wrong with them: both
// must take the same texts for sizes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <utility>

#include "base/sizes.h"

extern "C" {
#include "shim/environment.h"
}

namespace {

constexpr size_t kDefault = 4096;

size_t ThresholdFor(const char* text) {
  setenv("REPRISE_THRESHOLD", text, 1);
  const size_t bytes = reprise_threshold_from_environment();
  unsetenv("REPRISE_THRESHOLD");
  return bytes;
}

TEST(Environment, BothReadTheSameSizes) {
  for (const char* text : {"1",
                           "0",
                           "",
                           "4096",
                           "4096B",
                           "64K",
                           "64k",
                           "64KB",
                           "64KiB",
                           "64Ki",
                           "64kib",
                           "1M",
                           "1MiB",
                           "2G",
                           "1T",
                           "1P",
                           "7EiB",
                           "8E",
                           "1e",
                           "1Q",
                           "K",
                           "-1",
                           "+1",
                           "1.5G",
                           " 1",
                           "1 ",
                           "1 K",
                           "0x10",
                           "1KiBs",
                           "8388607T",
                           "8388608T",
                           "9223372036854775807",
                           "9223372036854775808",
                           "18446744073709551616",
                           "99999999999999999999"}) {
    const std::optional<reprise::Bytes> core = reprise::ParseWholeSize(text);
    const size_t expected = core && core->count() > 0 ? static_cast<size_t>(core->count()) : kDefault;
    EXPECT_EQ(ThresholdFor(text), expected) << text;
  }
}

TEST(Environment, OffMeansNever) {
  setenv("REPRISE_DISABLE", "1", 1);
  EXPECT_EQ(reprise_threshold_from_environment(), SIZE_MAX);
  setenv("REPRISE_DISABLE", "0", 1);
  EXPECT_EQ(reprise_threshold_from_environment(), kDefault);
  unsetenv("REPRISE_DISABLE");
  setenv("REPRISE_MODE", "off", 1);
  EXPECT_EQ(reprise_threshold_from_environment(), SIZE_MAX);
  unsetenv("REPRISE_MODE");
}

TEST(Environment, OffWithMoreRightsThanTheCaller) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can have others' rights";
  constexpr unsigned kNobody = 65534;
  ASSERT_EQ(seteuid(kNobody), 0);
  EXPECT_EQ(reprise_threshold_from_environment(), SIZE_MAX);
  ASSERT_EQ(seteuid(0), 0);
  ASSERT_EQ(setegid(kNobody), 0);
  EXPECT_EQ(reprise_threshold_from_environment(), SIZE_MAX);
  ASSERT_EQ(setegid(getgid()), 0);
  EXPECT_EQ(reprise_threshold_from_environment(), kDefault);
}

TEST(Environment, OffWhereThereIsNoneYet) {
  char** const saved = std::exchange(environ, nullptr);
  EXPECT_EQ(reprise_threshold_from_environment(), SIZE_MAX);
  environ = saved;
  EXPECT_EQ(reprise_threshold_from_environment(), kDefault);
}

}  // namespace
