// Deferred streams are what the simulated device is for: an order that a program did not ask for must show as
// corrupted bytes under some seed, and an order that it did ask for must hold under every one. Run with
// SIMCUDA_STREAMS=deferred.
#include <array>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "tests/simcuda/machine.h"

namespace simtest {
namespace {

constexpr int kSeeds = 200;
constexpr size_t kBlockBytes = 4096;

class Order : public Machine {
 protected:
  void SetUp() override {
    Machine::SetUp();
    memory_ = Allocated(kBlockBytes);
  }

  // In how many of all seeds `work` came out with corrupted bytes. It starts with the memory filled from
  // seed 1.
  int SeedsWithCorruption(const std::function<void()>& work) {
    int hits = 0;
    for (int seed = 1; seed <= kSeeds; ++seed) {
      simReseed(static_cast<unsigned long long>(seed));
      EXPECT_EQ(simFill(memory_, kBlockBytes, 1, nullptr), CUDA_SUCCESS);
      EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
      uint64_t before = Corrupted();
      work();
      EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
      hits += Corrupted() > before;
    }
    return hits;
  }

  void Fill(uint64_t seed, CUstream stream) { OK(simFill(memory_, kBlockBytes, seed, stream)); }
  void Verify(uint64_t seed, CUstream stream) { OK(simVerify(memory_, kBlockBytes, seed, stream)); }

  CUdeviceptr memory_ = 0;
};

TEST_F(Order, OneStreamKeepsItsOrder) {
  CUstream stream = NewStream();
  EXPECT_EQ(SeedsWithCorruption([&] {
              Fill(2, stream);
              Verify(2, stream);
              Fill(3, stream);
              Verify(3, stream);
            }),
            0);
}

TEST_F(Order, AMissingWaitIsSeen) {
  CUstream writer = NewStream(), reader = NewStream();
  int hits = SeedsWithCorruption([&] {
    Fill(2, writer);
    Verify(2, reader);
  });
  EXPECT_GT(hits, kSeeds / 10);
  EXPECT_LT(hits, kSeeds) << "the other order is as legal";
}

TEST_F(Order, WithTheWaitThereIsNothingToSee) {
  CUstream writer = NewStream(), reader = NewStream();
  EXPECT_EQ(SeedsWithCorruption([&] {
              Fill(2, writer);
              After(writer, reader);
              Verify(2, reader);
              After(reader, writer);
              Fill(3, writer);
            }),
            0);
}

TEST_F(Order, AnEventStandsForWhatWasThereWhenItWasRecorded) {
  CUstream writer = NewStream(), reader = NewStream();
  CUevent event = NewEvent();
  EXPECT_GT(SeedsWithCorruption([&] {
              OK(cuEventRecord(event, writer));
              Fill(2, writer);
              OK(cuStreamWaitEvent(reader, event, 0));
              Verify(2, reader);
            }),
            0);
}

TEST_F(Order, AnEventRecordedAnewLeavesEarlierWaitsAlone) {
  CUstream writer = NewStream(), other = NewStream(), reader = NewStream();
  CUevent event = NewEvent();
  EXPECT_EQ(SeedsWithCorruption([&] {
              Fill(2, writer);
              OK(cuEventRecord(event, writer));
              OK(cuStreamWaitEvent(reader, event, 0));
              OK(cuEventRecord(event, other));
              Verify(2, reader);
            }),
            0);
}

TEST_F(Order, AnEventThatWasNeverRecordedHoldsNothingUp) {
  CUstream stream = NewStream();
  OK(cuStreamWaitEvent(stream, NewEvent(), 0));
  OK(cuStreamSynchronize(stream));
}

TEST_F(Order, BlockingStreamsAndTheLegacyStreamWaitForEachOther) {
  CUstream blocking = NewStream(CU_STREAM_DEFAULT);
  EXPECT_EQ(SeedsWithCorruption([&] {
              Fill(2, blocking);
              Verify(2, CU_STREAM_LEGACY);
              Fill(3, nullptr);
              Verify(3, blocking);
            }),
            0);
}

TEST_F(Order, BlockingStreamsDoNotWaitForOneAnother) {
  CUstream writer = NewStream(CU_STREAM_DEFAULT), reader = NewStream(CU_STREAM_DEFAULT);
  EXPECT_GT(SeedsWithCorruption([&] {
              Fill(2, writer);
              Verify(2, reader);
            }),
            0);
}

TEST_F(Order, TheLegacyStreamBetweenThemOrdersThem) {
  CUstream writer = NewStream(CU_STREAM_DEFAULT), reader = NewStream(CU_STREAM_DEFAULT);
  CUdeviceptr between = Allocated(8);
  EXPECT_EQ(SeedsWithCorruption([&] {
              Fill(2, writer);
              OK(cuMemsetD8Async(between, 0, 8, nullptr));
              Verify(2, reader);
            }),
            0);
}

TEST_F(Order, NonBlockingStreamsHaveNothingToDoWithTheLegacyStream) {
  CUstream stream = NewStream(CU_STREAM_NON_BLOCKING);
  EXPECT_GT(SeedsWithCorruption([&] {
              Fill(2, nullptr);
              Verify(2, stream);
            }),
            0);
}

TEST_F(Order, ThePerThreadStreamIsBlocking) {
  EXPECT_EQ(SeedsWithCorruption([&] {
              Fill(2, CU_STREAM_PER_THREAD);
              Verify(2, CU_STREAM_LEGACY);
            }),
            0);
}

TEST_F(Order, EachThreadHasAPerThreadStreamOfItsOwn) {
  EXPECT_GT(SeedsWithCorruption([&] {
              Fill(2, CU_STREAM_PER_THREAD);
              std::thread([&] {
                EXPECT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
                EXPECT_EQ(simVerify(memory_, kBlockBytes, 2, CU_STREAM_PER_THREAD), CUDA_SUCCESS);
              }).join();
            }),
            0);
}

TEST_F(Order, SynchronisingAStreamIsNotSynchronisingTheOther) {
  CUstream writer = NewStream(), reader = NewStream();
  int hits = SeedsWithCorruption([&] {
    Fill(2, writer);
    Verify(1, reader);
    OK(cuStreamSynchronize(reader));
  });
  EXPECT_GT(hits, 0);
  EXPECT_LT(hits, kSeeds / 2) << "the fill should run late";
}

TEST_F(Order, PollingAnEventEnds) {
  CUstream stream = NewStream();
  CUevent event = NewEvent();
  int not_ready = 0;
  EXPECT_EQ(SeedsWithCorruption([&] {
              Fill(2, stream);
              OK(cuEventRecord(event, stream));
              CUresult state = CUDA_ERROR_NOT_READY;
              while ((state = cuEventQuery(event)) == CUDA_ERROR_NOT_READY) ++not_ready;
              OK(state);
              Verify(2, NewStream());
            }),
            0);
  EXPECT_GT(not_ready, 0);
}

TEST_F(Order, PollingAStreamEnds) {
  CUstream stream = NewStream();
  EXPECT_EQ(SeedsWithCorruption([&] {
              Fill(2, stream);
              CUresult state = CUDA_ERROR_NOT_READY;
              while ((state = cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY) continue;
              OK(state);
              Verify(2, NewStream());
            }),
            0);
}

TEST_F(Order, ASynchronousCopyToTheHostSeesWhatIsOrderedBeforeIt) {
  CUstream blocking = NewStream(CU_STREAM_DEFAULT);
  std::array<unsigned char, 16> seen = {};
  for (int seed = 1; seed <= kSeeds; ++seed) {
    simReseed(static_cast<unsigned long long>(seed));
    OK(cuMemsetD8Async(memory_, static_cast<unsigned char>(seed), seen.size(), blocking));
    OK(cuMemcpyDtoH(seen.data(), memory_, seen.size()));
    ASSERT_EQ(seen.back(), static_cast<unsigned char>(seed));
  }
}

TEST_F(Order, PageableMemoryMayBeOverwrittenOnceTheCopyHasBeenCalled) {
  CUstream stream = NewStream();
  std::vector<unsigned char> source(16, 7), seen(16);
  OK(cuMemcpyHtoDAsync(memory_, source.data(), source.size(), stream));
  source.assign(16, 8);
  OK(cuMemcpyDtoHAsync(seen.data(), memory_, seen.size(), stream));
  EXPECT_EQ(seen, std::vector<unsigned char>(16, 7));
}

TEST_F(Order, PinnedMemoryMayNot) {
  CUstream stream = NewStream();
  void* pinned = nullptr;
  OK(cuMemAllocHost(&pinned, 16));
  auto* source = static_cast<unsigned char*>(pinned);
  int late = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    simReseed(static_cast<unsigned long long>(seed));
    *source = 7;
    OK(cuMemcpyHtoDAsync(memory_, source, 1, stream));
    *source = 8;
    unsigned char seen = 0;
    OK(cuMemcpyDtoHAsync(&seen, memory_, 1, stream));
    late += seen == 8;
  }
  EXPECT_GT(late, kSeeds / 2);
}

TEST_F(Order, HostFunctionsRunInTheOrderOfTheStreamAndMayNotCallBack) {
  CUstream stream = NewStream();
  struct Seen {
    std::vector<int> order;
    CUresult from_within = CUDA_SUCCESS;
  } seen;
  auto first = [](void* data) { static_cast<Seen*>(data)->order.push_back(1); };
  auto second = [](void* data) {
    auto* seen = static_cast<Seen*>(data);
    seen->order.push_back(2);
    seen->from_within = cuCtxSynchronize();
  };
  OK(cuLaunchHostFunc(stream, first, &seen));
  OK(cuLaunchHostFunc(stream, second, &seen));
  OK(cuStreamSynchronize(stream));
  EXPECT_EQ(seen.order, (std::vector<int>{1, 2}));
  EXPECT_EQ(seen.from_within, CUDA_ERROR_NOT_PERMITTED);
}

TEST_F(Order, AKernelThatSpinsHoldsUpItsStreamAlone) {
  CUstream held = NewStream(), free = NewStream();
  int flag = 0;
  OK(simSpinUntil(&flag, held));
  OK(simFill(memory_, kBlockBytes, 2, held));
  OK(simVerify(memory_, kBlockBytes, 1, free));
  OK(cuStreamSynchronize(free));
  EXPECT_EQ(cuStreamQuery(held), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(simQueuedOperations(held), 2U);
  flag = 1;
  OK(cuStreamSynchronize(held));
  EXPECT_EQ(simQueuedOperations(held), 0U);
}

TEST_F(Order, TheLegacyStreamIsAskedForItsOwnWorkAlone) {
  CUstream blocking = nullptr;
  CUevent event = nullptr;
  int flag = 0;
  OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  OK(simSpinUntil(&flag, blocking));
  EXPECT_EQ(cuStreamQuery(blocking), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuStreamQuery(CU_STREAM_LEGACY), CUDA_SUCCESS);
  OK(cuEventRecord(event, CU_STREAM_LEGACY));  // which waits for the other
  EXPECT_EQ(cuStreamQuery(CU_STREAM_LEGACY), CUDA_ERROR_NOT_READY);
  flag = 1;
  OK(cuStreamSynchronize(blocking));
  while (cuStreamQuery(CU_STREAM_LEGACY) == CUDA_ERROR_NOT_READY) continue;
  OK(cuEventDestroy(event));
  OK(cuStreamDestroy(blocking));
}

TEST_F(Order, AHostThatWaitsIsReleasedByAnotherThread) {
  CUstream stream = NewStream();
  std::atomic<int> flag = 0;
  OK(simSpinUntil(reinterpret_cast<int*>(&flag), stream));
  std::thread other([&] { flag = 1; });
  OK(cuStreamSynchronize(stream));
  other.join();
}

TEST_F(Order, ThreadsShareTheDevice) {
  auto program = [this](unsigned long long number) {
    OK(cuCtxSetCurrent(context_));
    CUstream stream = NewStream();
    for (unsigned long long i = 0; i < 100; ++i) {
      CUdeviceptr memory = 0;
      OK(cuMemAllocAsync(&memory, kBlockBytes, stream));
      OK(simFill(memory, kBlockBytes, number + i, stream));
      OK(simVerify(memory, kBlockBytes, number + i, stream));
      OK(cuLaunchHostFunc(
          stream, [](void*) {}, nullptr));
      OK(cuMemFreeAsync(memory, stream));
      if (i % 10 != 0) continue;
      OK(cuStreamSynchronize(stream));
    }
    OK(cuStreamDestroy(stream));
  };
  std::vector<std::thread> threads;
  for (unsigned long long number = 0; number < 4; ++number) threads.emplace_back(program, 1000 * number);
  for (std::thread& thread : threads) thread.join();
  OK(cuCtxSynchronize());
  EXPECT_EQ(Corrupted(), 0U);
  EXPECT_EQ(Illegal(), 0U);
}

TEST_F(Order, AStreamMayBeDestroyedWithWorkOnIt) {
  CUstream stream = NewStream();
  Fill(2, stream);
  OK(cuStreamDestroy(stream));
  OK(cuCtxSynchronize());
  Verify(2, nullptr);
  OK(cuCtxSynchronize());
  EXPECT_EQ(Corrupted(), 0U);
}

// Where the real driver may crash.
TEST_F(Order, WhoUsesAStreamOrAnEventThatIsGoneIsEnded) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  CUstream stream = NewStream();
  CUevent event = NewEvent(), other = NewEvent();
  OK(cuStreamDestroy(stream));
  OK(cuEventDestroy(event));
  EXPECT_DEATH(cuStreamQuery(stream), "cuStreamQuery is given a stream or an event that has been destroyed");
  EXPECT_DEATH(cuEventRecord(other, stream), "cuEventRecord is given");
  EXPECT_DEATH(cuEventRecord(event, nullptr), "cuEventRecord is given");
  EXPECT_DEATH(cuStreamWaitEvent(nullptr, event, 0), "cuStreamWaitEvent is given");
  EXPECT_DEATH(cuEventQuery(event), "cuEventQuery is given");
  EXPECT_EQ(cuEventQuery(reinterpret_cast<CUevent>(12345)), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Order, FreeingMemoryWaitsForTheWholeDevice) {
  CUstream stream = NewStream();
  CUdeviceptr doomed = Allocated(kBlockBytes);
  OK(simFill(doomed, kBlockBytes, 2, stream));
  uint64_t waits = simHostSynchronizations();
  OK(cuMemFree(doomed));
  EXPECT_EQ(simHostSynchronizations(), waits + 1);
  EXPECT_EQ(simQueuedOperations(stream), 0U);
  EXPECT_EQ(Illegal(), 0U);
}

}  // namespace
}  // namespace simtest
