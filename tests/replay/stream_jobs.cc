#include "tests/replay/stream_jobs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace reprise::replay {
namespace {

constexpr Stream kCompute{0};
constexpr Stream kComing{1};  // weights, batches, what comes back
constexpr Stream kGoing{2};   // gradients, what goes to the host
constexpr Stream kLeaving{
    3};  // takes nothing and runs nothing: waits for all that have used a block, and frees it

constexpr int64_t kTokens = 4096;
constexpr int64_t kVocabulary = 50304;
constexpr int64_t kRanks = 8;
constexpr Microseconds kForward = 2000;  // of a layer 4096 wide
// The host reads the loss of each step, so much before the device is through with it.
constexpr Microseconds kAhead = 3000;

struct Layer {
  int64_t width;
  int64_t tokens = kTokens;
  Bytes x() const { return Bytes(tokens * width * 2); }  // one activation
  Bytes weights() const { return Bytes(12 * width * width * 2); }
  Microseconds forward() const {
    return kForward * static_cast<double>(width * width) / static_cast<double>(4096 * 4096) *
           static_cast<double>(tokens) / static_cast<double>(kTokens);
  }
};

class Model {
 public:
  Model(StreamJob& job, const StreamJobOptions& options, Stream compute, uint64_t seed)
      : job_(job), options_(options), compute_(compute) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < options.layers; ++i)
      layers_.push_back({seed == 0 ? 4096 : static_cast<int64_t>(2048 + 256 * (random() % 13))});
    embedding_ = Bytes(kVocabulary * layers_[0].width * 2);
    for (const Layer& layer : layers_) Take(compute_, IsSharded() ? Part(layer) : layer.weights());
    Take(compute_, IsSharded() ? Bytes(embedding_.count() / kRanks) : embedding_);
  }

  void Step() {
    if (IsSharded()) job_.WaitFor(kComing, compute_);
    const int64_t batch = TakeBatch();
    const int64_t embedded = Work(layers_[0].x(), 50);
    std::vector<int64_t> kept = Forward(embedded);
    const int64_t gradient = Head();
    Backward(kept, gradient);
    Release(batch);
    Optimize();
    first_ = false;
  }

  // The next layer of a forward pass that keeps nothing. False: it was the last.
  bool Infer() {
    if (!input_.has_value()) input_ = Work(layers_[0].x(), 50);
    std::vector<int64_t> kept;
    const int64_t output = RunLayer(layers_[next_], kept);
    for (const int64_t block : kept) Release(block);
    Release(*std::exchange(input_, output));
    next_ = (next_ + 1) % layers_.size();
    if (next_ == 0) Release(*std::exchange(input_, std::nullopt));
    return next_ != 0;
  }
  // Of the requests from now on.
  void SetTokens(int64_t tokens) {
    for (Layer& layer : layers_) layer.tokens = tokens;
  }

 private:
  bool IsSharded() const {
    return options_.use == StreamUse::kSharded || options_.use == StreamUse::kShardedRecorded;
  }
  static Bytes Part(const Layer& layer) { return Bytes(layer.weights().count() / kRanks); }
  Microseconds Transfer(const Layer& layer) const { return options_.transfer * layer.forward(); }
  int64_t Take(Stream stream, Bytes bytes) { return job_.Alloc(stream, std::max(bytes, Bytes(512))); }
  // A block that `time` of computing fills.
  int64_t Work(Bytes bytes, Microseconds time) {
    const int64_t block = Take(compute_, bytes);
    job_.Work(compute_, time);
    return block;
  }
  void Release(int64_t block) { job_.Free(compute_, block); }
  // What `stream` has taken and `user` used last.
  void ReleaseAside(Stream stream, Stream user, int64_t block) {
    if (options_.use == StreamUse::kShardedRecorded) {
      job_.WaitFor(kLeaving, stream);
      job_.WaitFor(kLeaving, user);
      job_.Free(kLeaving, block);
    } else {
      job_.WaitFor(stream, user);
      job_.Free(stream, block);
    }
  }

  // Of the batch that has come, and the next one is asked for.
  int64_t TakeBatch() {
    const Bytes bytes(kTokens * 8 * (options_.use == StreamUse::kLoader ? 4096 : 1));
    if (options_.use != StreamUse::kLoader) return Take(compute_, bytes);
    if (!coming_.has_value()) coming_ = AskForBatch(bytes);
    const auto [block, there] = *coming_;
    job_.Wait(compute_, there);
    coming_ = AskForBatch(bytes);
    return block;
  }
  std::pair<int64_t, int64_t> AskForBatch(Bytes bytes) {
    const int64_t block = Take(kComing, bytes);
    job_.Work(kComing, 8 * kForward);
    return {block, job_.Record(kComing)};
  }

  // The weights of a layer, whole, on their way.
  void Gather(int i) {
    if (!IsSharded() || i < 0 || i >= options_.layers || gathered_.contains(i)) return;
    // The host is not further ahead than two layers of weights.
    if (released_.size() >= 2) {
      job_.Await(compute_, released_[released_.size() - 2]);
    }
    const Layer& layer = layers_[static_cast<size_t>(i)];
    const int64_t part = Take(kComing, Part(layer));
    const int64_t whole = Take(kComing, layer.weights());
    job_.Work(kComing, Transfer(layer));
    gathered_[i] = {whole, job_.Record(kComing)};
    ReleaseAside(kComing, kComing, part);
  }
  void UseWeights(int i) {
    if (IsSharded()) job_.Wait(compute_, gathered_.at(i).second);
  }
  void ReleaseWeights(int i) {
    if (!IsSharded()) return;
    released_.push_back(job_.Record(compute_));
    ReleaseAside(kComing, compute_, gathered_.at(i).first);
    gathered_.erase(i);
  }

  // What a layer computes, with all that its backward pass needs in `kept`; its output.
  int64_t RunLayer(const Layer& layer, std::vector<int64_t>& kept) {
    BeginBranch(layer);
    const auto keep = [&](double parts, Microseconds share) {
      kept.push_back(Work(Bytes(static_cast<int64_t>(static_cast<double>(layer.x().count()) * parts)),
                          share * layer.forward()));
    };
    keep(1, .02);
    keep(3, .25);
    const int64_t query = Work(layer.x(), .02 * layer.forward());
    const int64_t key = Work(layer.x(), .02 * layer.forward());
    keep(1, .15);
    Release(query);
    Release(key);
    keep(1, .08);
    keep(1, .02);
    keep(4, .22);
    keep(4, .02);
    if (options_.use == StreamUse::kBranches) job_.WaitFor(compute_, kComing);
    return Work(layer.x(), .2 * layer.forward());
  }

  void BeginBranch(const Layer& layer) {
    if (options_.use != StreamUse::kBranches) return;
    job_.WaitFor(kComing, compute_);
    for (const int64_t parts : {2, 1, 3}) {
      branch_.push_back(Take(kComing, layer.x() * parts));
      job_.Work(kComing, .2 * layer.forward());
    }
  }
  // The backward pass of the layer's that ran last, or nothing but its end.
  void EndBranch(const Layer& layer, bool backward) {
    if (options_.use != StreamUse::kBranches) return;
    job_.WaitFor(kComing, compute_);
    for (int i = 0; i < 3; ++i) {
      const int64_t workspace = backward ? Take(kComing, layer.x() * 2) : 0;
      if (backward) job_.Work(kComing, .4 * layer.forward());
      job_.Free(kComing, branch_.back());
      branch_.pop_back();
      if (backward) job_.Free(kComing, workspace);
    }
  }

  // One block a layer: its input.
  std::vector<int64_t> Forward(int64_t input) {
    std::vector<int64_t> inputs = {input};
    kept_.assign(layers_.size(), {});
    Gather(0);
    for (int i = 0; i < options_.layers; ++i) {
      Gather(i + 1);
      UseWeights(i);
      std::vector<int64_t> kept;
      inputs.push_back(RunLayer(layers_[static_cast<size_t>(i)], kept));
      if (options_.recompute) {
        for (const int64_t block : kept) Release(block);
        EndBranch(layers_[static_cast<size_t>(i)], /*backward=*/false);
      } else {
        kept_[static_cast<size_t>(i)] = options_.use == StreamUse::kOffload ? Offload(i, kept) : kept;
      }
      if (i + 1 < options_.layers) ReleaseWeights(i);
    }
    return inputs;
  }

  // To the host, all of it; the blocks go as the next layer's are on their way.
  std::vector<int64_t> Offload(int i, std::vector<int64_t>& kept) {
    job_.WaitFor(kGoing, compute_);
    job_.Work(kGoing, Transfer(layers_[static_cast<size_t>(i)]));
    going_.emplace_back(job_.Record(kGoing), std::move(kept));
    if (going_.size() > 1 || i + 1 == options_.layers) ReleaseGone();
    if (i + 1 == options_.layers) ReleaseGone();
    return {};
  }
  void ReleaseGone() {
    if (going_.empty()) return;
    job_.Wait(compute_, going_.front().first);
    for (const int64_t block : going_.front().second) Release(block);
    going_.erase(going_.begin());
  }
  void BringBack(int i) {
    if (options_.use != StreamUse::kOffload || i < 0 || back_.contains(i)) return;
    const Layer& layer = layers_[static_cast<size_t>(i)];
    std::vector<int64_t> blocks;
    for (const int64_t parts : {1, 3, 1, 1, 1, 4, 4}) blocks.push_back(Take(kComing, layer.x() * parts));
    job_.Work(kComing, Transfer(layer));
    back_[i] = {job_.Record(kComing), std::move(blocks)};
  }

  int64_t Head() {
    const Bytes logits_bytes(kTokens * kVocabulary * 2);
    const int64_t logits = Work(logits_bytes, kForward);
    const int64_t loss = Work(logits_bytes * 2, .2 * kForward);
    Release(loss);
    const int64_t of_logits = Work(logits_bytes, .2 * kForward);
    Release(logits);
    const int64_t gradient = Work(layers_.back().x(), kForward);
    Release(of_logits);
    return gradient;
  }

  void Backward(std::vector<int64_t>& inputs, int64_t gradient) {
    for (int i = options_.layers; i-- > 0;) {
      const Layer& layer = layers_[static_cast<size_t>(i)];
      Gather(i);
      Gather(i - 1);
      UseWeights(i);
      BringBack(i);
      BringBack(i - 1);
      std::vector<int64_t> kept = std::move(kept_[static_cast<size_t>(i)]);
      std::optional<int64_t> again;
      if (options_.recompute) again = RunLayer(layer, kept);
      if (options_.use == StreamUse::kOffload) {
        job_.Wait(compute_, back_.at(i).first);
        kept = std::move(back_.at(i).second);
        back_.erase(i);
      }
      const int64_t of_weights = Take(compute_, layer.weights());
      EndBranch(layer, /*backward=*/true);
      while (!kept.empty()) {
        const int64_t workspace = Work(layer.x() * 2, 2 * layer.forward() / 7);
        Release(kept.back());
        kept.pop_back();
        Release(workspace);
      }
      if (options_.use == StreamUse::kBranches) job_.WaitFor(compute_, kComing);
      const int64_t next =
          Work(i == 0 ? layer.x() : layers_[static_cast<size_t>(i) - 1].x(), .02 * layer.forward());
      Release(gradient);
      gradient = next;
      if (again.has_value()) Release(*again);
      Release(inputs[static_cast<size_t>(i) + 1]);
      ReleaseWeights(i);
      Scatter(layer, of_weights);
    }
    FinishScattering(0);
    Release(gradient);
    Release(inputs[0]);
  }

  // A rank's part of a layer's gradients is what stays until the optimizer has run.
  void Scatter(const Layer& layer, int64_t of_weights) {
    if (!IsSharded()) return gradients_.push_back(of_weights);
    const bool copies = options_.use == StreamUse::kSharded;
    const int64_t input = copies ? Take(kGoing, layer.weights()) : 0;
    job_.WaitFor(kGoing, compute_);
    const int64_t part = Take(kGoing, Part(layer));
    gradients_.push_back(Take(kGoing, Part(layer) * 2));
    job_.Work(kGoing, Transfer(layer));
    scattering_.push_back({job_.Record(kGoing), of_weights, part, input});
    FinishScattering(1);
  }
  void FinishScattering(size_t left) {
    for (; scattering_.size() > left; scattering_.erase(scattering_.begin())) {
      const Scattered& done = scattering_.front();
      if (options_.use == StreamUse::kShardedRecorded) {
        job_.Wait(kLeaving, done.over);
        job_.Free(kLeaving, done.of_weights);
        job_.Free(kLeaving, done.part);
      } else {
        job_.Wait(compute_, done.over);
        Release(done.of_weights);
        job_.Free(kGoing, done.part);
        job_.Free(kGoing, done.input);
      }
    }
  }

  void Optimize() {
    if (IsSharded()) job_.WaitFor(compute_, kGoing);
    for (size_t i = 0; i < gradients_.size(); ++i) {
      const Layer& layer = layers_[i];
      const Bytes bytes = IsSharded() ? Part(layer) * 2 : layer.weights();
      if (first_) Take(compute_, bytes), Take(compute_, bytes);
      Release(Work(bytes, 60));
    }
    for (const int64_t block : gradients_) {
      if (options_.use == StreamUse::kShardedRecorded) {
        job_.WaitFor(kLeaving, compute_);
        job_.Free(kLeaving, block);
      } else {
        Release(block);
      }
    }
    gradients_.clear();
    released_.clear();
  }

 private:
  struct Scattered {
    int64_t over;
    int64_t of_weights;
    int64_t part;
    int64_t input;
  };
  StreamJob& job_;
  const StreamJobOptions options_;
  const Stream compute_;
  std::vector<Layer> layers_;
  Bytes embedding_;
  bool first_ = true;
  size_t next_ = 0;  // layer of Infer, and what goes into it
  std::optional<int64_t> input_;
  std::optional<std::pair<int64_t, int64_t>> coming_;  // the next batch, and when it is there
  std::map<int, std::pair<int64_t, int64_t>> gathered_;
  std::vector<int64_t> released_;
  std::vector<std::vector<int64_t>> kept_;  // by layer, for its backward pass
  std::vector<std::pair<int64_t, std::vector<int64_t>>> going_;
  std::map<int, std::pair<int64_t, std::vector<int64_t>>> back_;
  std::vector<Scattered> scattering_;
  std::vector<int64_t> gradients_;
  std::vector<int64_t> branch_;  // what the branches of layers need for their backward pass
};

}  // namespace

std::string_view NameOf(StreamUse use) {
  switch (use) {
    case StreamUse::kOneStream:
      return "one-stream";
    case StreamUse::kSharded:
      return "sharded";
    case StreamUse::kShardedRecorded:
      return "sharded-recorded";
    case StreamUse::kOffload:
      return "offload";
    case StreamUse::kLoader:
      return "loader";
    case StreamUse::kBranches:
      return "branches";
    case StreamUse::kTwoModels:
      return "two-models";
    case StreamUse::kWorkers:
      return "workers";
  }
  return "";
}

namespace {

constexpr uint32_t kWorkers = 4;

StreamJob MakeWorkers(const StreamJobOptions& options) {
  StreamJob job;
  std::mt19937_64 random(options.seed);
  std::vector<Model> models;
  for (uint32_t i = 0; i < kWorkers; ++i)
    models.emplace_back(job, options, Stream{i}, options.seed == 0 ? 0 : options.seed + i);
  for (int step = 0; step < options.steps; ++step) {
    std::vector<Model*> busy;
    for (Model& model : models) {
      if (options.seed > 0) model.SetTokens(kTokens / 4 * static_cast<int64_t>(1 + random() % 4));
      busy.push_back(&model);
    }
    while (!busy.empty()) {
      const size_t next = random() % busy.size();
      job.SetThread(static_cast<uint64_t>(busy[next] - models.data()));
      if (!busy[next]->Infer()) busy.erase(busy.begin() + static_cast<int64_t>(next));
    }
    for (uint32_t i = 1; i < kWorkers; ++i) job.WaitFor(Stream{0}, Stream{i});
    job.Await(Stream{0}, job.Record(Stream{0}), kAhead);
    job.EndStep(Stream{0});
  }
  return job;
}

}  // namespace

StreamJob MakeStreamJob(const StreamJobOptions& options) {
  if (options.use == StreamUse::kWorkers) return MakeWorkers(options);
  StreamJob job;
  std::vector<Model> models;
  models.emplace_back(job, options, kCompute, options.seed);
  if (options.use == StreamUse::kTwoModels) models.emplace_back(job, options, kGoing, options.seed + 1);
  for (int step = 0; step < options.steps; ++step) {
    for (Model& model : models) model.Step();
    job.Await(kCompute, job.Record(kCompute), kAhead);
    job.EndStep(kCompute);
  }
  return job;
}

}  // namespace reprise::replay
