// Legacy handles between processes: an interposer that serves memory must know which blocks can be exported,
// so the simulated device exports those, and only those, for real.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "tests/simcuda/machine.h"

namespace simtest {
namespace {

constexpr size_t kBytes = 1000;

// The importing process: 0 if it saw what the exporter wrote.
int Import(int from_exporter) {
  CUipcMemHandle handle;
  CUcontext context = nullptr;
  CUdeviceptr memory = 0;
  bool ready = read(from_exporter, &handle, sizeof handle) == sizeof handle && cuInit(0) == CUDA_SUCCESS &&
               cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
               cuCtxSetCurrent(context) == CUDA_SUCCESS;
  if (!ready) return 1;
  if (cuIpcOpenMemHandle(&memory, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) != CUDA_SUCCESS) return 2;
  if (simVerify(memory, kBytes, 1, nullptr) != CUDA_SUCCESS || cuCtxSynchronize() != CUDA_SUCCESS) return 3;
  if (simCorruptedBytes() != 0) return 4;
  if (cuMemFree(memory) != CUDA_ERROR_INVALID_VALUE) return 5;
  return cuIpcCloseMemHandle(memory) == CUDA_SUCCESS ? 0 : 6;
}

class Ipc : public Machine {
 protected:
  // Before the library is initialised, which does not survive a fork.
  static void SetUpTestSuite() {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    importer_ = fork();
    if (importer_ == 0) _exit(Import(ends[0]));
    to_importer_ = ends[1];
  }

  static inline pid_t importer_ = 0;
  static inline int to_importer_ = -1;
};

TEST_F(Ipc, AnotherProcessSeesTheMemory) {
  CUdeviceptr before = Allocated(512), memory = Allocated(kBytes);
  OK(simFill(before, 512, 2, nullptr));
  OK(simFill(memory, kBytes, 1, nullptr));
  OK(cuCtxSynchronize());
  CUipcMemHandle handle;
  OK(cuIpcGetMemHandle(&handle, memory));
  CUdeviceptr opened = 0;
  EXPECT_EQ(cuIpcOpenMemHandle(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
            CUDA_ERROR_INVALID_CONTEXT)
      << "in the process that exported it";
  ASSERT_EQ(write(to_importer_, &handle, sizeof handle), static_cast<ssize_t>(sizeof handle));
  int status = -1;
  ASSERT_EQ(waitpid(importer_, &status, 0), importer_);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(Ipc, AForkedChildHasNoDevice) {
  pid_t child = fork();
  if (child == 0) {
    size_t free = 0, total = 0;
    _exit(cuMemGetInfo(&free, &total) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace simtest
