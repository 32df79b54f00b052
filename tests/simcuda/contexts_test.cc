// Contexts of which the handle comes again. Run with SIMCUDA_REUSE_CONTEXTS=1.
#include "tests/simcuda/machine.h"

namespace simtest {
namespace {

class Contexts : public Machine {};

TEST_F(Contexts, ComeAgainWithNothingOfTheLast) {
  CUcontext first = nullptr, second = nullptr;
  OK(cuCtxCreate(&first, nullptr, CU_CTX_SCHED_SPIN, 0));
  OK(cuCtxDestroy(first));
  OK(cuCtxCreate(&second, nullptr, 0, 0));
  EXPECT_EQ(second, first);
  unsigned flags = 1;
  OK(cuCtxGetFlags(&flags));
  EXPECT_EQ(flags, 0U);
  OK(cuCtxDestroy(second));
}

TEST_F(Contexts, ComeAgainWhereThePrimaryOneEnded) {
  CUcontext created = nullptr, primary = nullptr;
  OK(cuDevicePrimaryCtxReset(0));
  OK(cuCtxCreate(&created, nullptr, 0, 0));
  EXPECT_EQ(created, context_);
  OK(cuDevicePrimaryCtxRetain(&primary, 0));
  EXPECT_NE(primary, created);
  OK(cuCtxDestroy(created));
  OK(cuDevicePrimaryCtxRelease(0));
}

}  // namespace
}  // namespace simtest
