// The one line that a person would name: wrong ones send people to optimise a library that they cannot
// change.
#include "profiler/sites.h"

#include <gtest/gtest.h>

#include "tests/profiler/testing.h"

namespace reprise::profiler {
namespace {

constexpr char kTorch[] = "/usr/lib/python3/dist-packages/torch/nn/modules/linear.py";

class SitesTest : public ::testing::Test {
 protected:
  StackId Stack(const std::vector<Frame>& frames) {
    std::vector<FrameId> ids;
    for (const Frame& frame : frames) ids.push_back(stacks_.Intern(frame));
    return stacks_.Intern(ids);
  }
  Site Of(const std::vector<Frame>& frames) { return SiteOf(stacks_, Stack(frames)); }

  StackTable stacks_;
};

TEST_F(SitesTest, TheInnermostLineOfTheJobsOwn) {
  const Site site = Of({Python("forward", 114, kTorch), Python("Attention.forward", 25, "/job/gpt.py"),
                        Python("_call_impl", 1194, kTorch), Python("main", 9, "/job/train.py")});
  EXPECT_EQ(site, (Site{.label = "gpt.py:25 Attention.forward",
                        .file = "/job/gpt.py",
                        .line = 25,
                        .function = "Attention.forward",
                        .library = ""}));
}

TEST_F(SitesTest, ALibrarysLineWhereTheJobHasNone) {
  const Site site = Of({Python("run", 975, "/usr/lib/python3.11/threading.py"), Python("f", 1, kTorch)});
  EXPECT_EQ(site.label, "threading.py:975 run");
  EXPECT_EQ(site.library, "Python");
  EXPECT_EQ(Of({Python("forward", 114, kTorch)}).library, "torch");
}

// As PyTorch's own snapshots have them: no modules, and its unwinder innermost.
TEST_F(SitesTest, NativeFramesWithoutModules) {
  const std::vector<Frame> allocator = {
      Native("", 0, "torch::unwind::unwind()"),
      Native("", 0, "torch::CapturedTraceback::gather(bool, bool, bool)"),
      Native("", 0, "torch::cuda::(anonymous namespace)::gather_with_cpp()"),
      Native("", 0,
             "c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc(unsigned long)")};
  const auto under = [&](std::vector<Frame> callers) {
    callers.insert(callers.begin(), allocator.begin(), allocator.end());
    return Of(callers);
  };
  const Frame empty = Native("", 0, "at::detail::empty_generic(c10::ArrayRef<long>)");
  const Frame bmm = Native("", 0, "at::_ops::bmm::call(at::Tensor const&, at::Tensor const&)");
  const Frame thread = Native("", 0, "__clone");
  const Site library = under({empty, bmm, Native("", 0, "std::vector<at::Tensor>::~vector()"), thread});
  EXPECT_EQ(library.label, "at::_ops::bmm::call in PyTorch");
  EXPECT_EQ(library.library, "PyTorch");
  const Site own = under({empty, bmm, Native("", 0, "Model::Forward(int)"), thread});
  EXPECT_EQ(own.label, "Model::Forward");
  EXPECT_EQ(own.library, "");
  for (const char* function : {"PyramidNet::Forward", "cloneWeights"}) {
    EXPECT_EQ(under({empty, bmm, Native("", 0, std::string(function) + "()"), thread}).label, function);
  }
  const Frame engine =
      Native("", 0, "torch::autograd::Engine::thread_main(std::shared_ptr<torch::autograd::GraphTask>)");
  EXPECT_EQ(under({empty, bmm, engine, thread}).label, "backward pass");
  EXPECT_EQ(under({empty, bmm, engine, Native("", 0, "Model::Backward()")}).label, "Model::Backward");
}

TEST_F(SitesTest, NamesAreCutAtTheirParameters) {
  const auto label = [&](const char* function) { return Of({Native("", 0, function)}).label; };
  EXPECT_EQ(label("Run<void (int), 1>::go()"), "Run<void (int), 1>::go");
  EXPECT_EQ(label("P::operator()(int) const"), "P::operator()");
  EXPECT_EQ(label("P::operator()<void (int)>(int)"), "P::operator()<void (int)>");
  EXPECT_EQ(label("operator<< <char>(std::ostream&)"), "operator<< <char>");
  EXPECT_EQ(label("P::operator->() const"), "P::operator->");
  EXPECT_EQ(label("Less<(1>0)>::f(int)"), "Less<(1>0)>::f");
  EXPECT_EQ(label("f(std::vector<int>)"), "f");
}

TEST_F(SitesTest, WhoseCodeItIs) {
  for (const char* own : {"train.py", "/job/torch.py", "/data/lib/pythonic/model.py", "<string>", "<stdin>",
                          "/lib/my/python3/model.py"}) {
    EXPECT_TRUE(IsOwnCode(own)) << own;
  }
  for (const char* other :
       {"", kTorch, "<frozen importlib._bootstrap>", "<eval_with_key>.0",
        "/env/lib/python3.12/site-packages/numpy/core.py", "/usr/lib64/python3.9/os.py",
        "/opt/python/lib/python3.13t/json/decoder.py", "/src/pytorch/torch/optim/adamw.py"}) {
    EXPECT_FALSE(IsOwnCode(other)) << other;
  }
}

TEST_F(SitesTest, ThreadsWithoutCode) {
  EXPECT_EQ(Of({Python(std::string(kBackwardFrame), 0, "")}).label, "backward pass");
  EXPECT_EQ(Of({Python(std::string(kThreadFrame) + "worker>", 0, "")}).label, "thread worker");
}

TEST_F(SitesTest, NativeOutsideOfAllocatorsAndFrameworks) {
  const Site site =
      Of({Native("/r/libreprise-host.so", 16), Native("/l/libc10.so", 1), Native("/l/libtorch_cpu.so", 2),
          Native("/job/trainer", 0x1234), Native("/lib/x86_64-linux-gnu/libc.so.6", 3)});
  EXPECT_EQ(site.label, "trainer+0x1234");
  EXPECT_EQ(site.library, "");
  EXPECT_EQ(Of({Native("/job/libown.so", 1, "load")}).label, "load in libown.so");
}

TEST_F(SitesTest, NativeOfALibraryByItsName) {
  const Site site =
      Of({Native("/r/libreprise.so", 16), Native("/cuda/libcudart.so.12", 5),
          Native("/cuda/libcublas.so.12.1.3.1", 7, "cublasCreate_v2"), Native("/usr/bin/python3.11", 1)});
  EXPECT_EQ(site.label, "cublasCreate_v2 in cuBLAS");
  EXPECT_EQ(site.library, "cuBLAS");
  EXPECT_EQ(LibraryOf("/x/libcublasLt.so.12"), "cuBLASLt");
  EXPECT_EQ(LibraryOf("/x/libcudnn_ops_infer.so.8"), "cuDNN");
  EXPECT_EQ(LibraryOf("/x/libnccl.so.2"), "NCCL");
  EXPECT_EQ(LibraryOf("/x/libother.so"), "libother.so");
}

TEST_F(SitesTest, TheCallThatEnteredTheInnermostLibrary) {
  const Site site =
      Of({Native("/l/libc10.so", 1, "c10::alloc_cpu(unsigned long)"), Native("/l/libtorch_cpu.so", 2),
          Native("/l/libtorch_cpu.so", 3, "at::(anonymous namespace)::mm(_object*)"),
          Native("/l/libtorch_python.so", 3), Native("/usr/bin/python3.11", 4, "eval"),
          Native("/l/libtorch_python.so", 5, "outer")});
  EXPECT_EQ(site.label, "at::mm in PyTorch");
  EXPECT_EQ(site.function, "at::(anonymous namespace)::mm(_object*)");
  EXPECT_EQ(
      Of({Native("/l/libc10.so", 1), Native("/l/libtorch_cpu.so", 2), Native("/usr/bin/python3", 4)}).label,
      "libtorch_cpu.so+0x2");
}

TEST_F(SitesTest, NothingIsKnown) {
  EXPECT_EQ(SiteOf(stacks_, StackId(0)), Site{.label = "(no stack)"});
  EXPECT_EQ(Of({Native("/lib/libc.so.6", 16)}).label, "libc.so.6+0x10");
}

TEST_F(SitesTest, AThreadsNameSaysNotWhere) {
  EXPECT_TRUE(SaysWhere(Of({Python("step", 3, "train.py")})));
  EXPECT_FALSE(SaysWhere(Of({Python("<thread x>", 0, "")})));
  EXPECT_FALSE(SaysWhere(SiteOf(stacks_, StackId(0))));
}

}  // namespace
}  // namespace reprise::profiler
