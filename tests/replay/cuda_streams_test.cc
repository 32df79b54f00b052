// Why: the host waits for the device inside of an allocation. A device that will not come to an end, because it waits for
// this very thread, must not keep it for ever; nor may anything be asked that a capture does not allow.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "replay/cuda/streams.h"

namespace reprise::replay::cuda {
namespace {

using std::chrono::steady_clock;

int the_context = 0;
const auto kContext = reinterpret_cast<cu_context>(&the_context);

// What the driver answers about an event: that it is not ready so many times, and then this.
struct Answers {
  int64_t not_ready = 0;
  Result then = kSuccess;
  std::atomic<int>* begins_capture = nullptr;  // while it is asked
  int queries = 0;
};
Answers answers;

Result Query(Event) {
  ++answers.queries;
  if (answers.begins_capture != nullptr) ++*answers.begins_capture;
  return answers.not_ready-- > 0 ? kNotReady : answers.then;
}

class AwaitedEvents : public testing::Test {
 protected:
  AwaitedEvents() {
    driver_.CtxGetCurrent = [](cu_context* context) {
      *context = kContext;
      return kSuccess;
    };
    driver_.EventCreate = [](Event*, unsigned) { return kSuccess; };
    driver_.EventRecord = [](Event, cu_stream) { return kSuccess; };
    driver_.EventQuery = Query;
  }

  // Waits for an event on a device that answers like this.
  bool Await(DeviceStreams& streams, const Answers& device) {
    StreamOrder order(/*units=*/1, /*granule_shift=*/0, &streams);
    const Stream stream = streams.Add({}, kContext, order);
    const StreamEvents::Event event = streams.Record(stream);
    EXPECT_NE(event, nullptr);
    answers = device;
    return streams.Await(event);
  }

  Driver driver_;
  std::atomic<int> captures_{0};
};

TEST_F(AwaitedEvents, ComeWhenTheDeviceIsThere) {
  DeviceStreams streams(driver_, captures_, /*patience=*/std::chrono::hours(1));  // however busy the machine
  EXPECT_TRUE(Await(streams, {.not_ready = 1000}));
  EXPECT_EQ(answers.queries, 1001);
}

TEST_F(AwaitedEvents, AreGivenUpOnceAndNotAwaitedAgain) {
  DeviceStreams streams(driver_, captures_, /*patience=*/steady_clock::duration(0));
  EXPECT_FALSE(Await(streams, {.not_ready = INT64_MAX}));
  EXPECT_FALSE(Await(streams, {.not_ready = 1000}));
  EXPECT_EQ(answers.queries, 1);
  EXPECT_TRUE(Await(streams, {}));
}

TEST_F(AwaitedEvents, AreNotGivenUpWhereTheyHaveComeInTheEnd) {
  DeviceStreams streams(driver_, captures_, /*patience=*/steady_clock::duration(0));
  EXPECT_TRUE(Await(streams, {}));  // however late it is
  EXPECT_FALSE(Await(streams, {.not_ready = INT64_MAX}));
}

TEST_F(AwaitedEvents, AreNotAwaitedWhereTheProcessEnds) {
  DeviceStreams streams(driver_, captures_);
  streams.StopWaiting();
  EXPECT_FALSE(Await(streams, {.not_ready = INT64_MAX}));
  EXPECT_TRUE(Await(streams, {}));
}

TEST_F(AwaitedEvents, AreNotAskedForOnABrokenDevice) {
  DeviceStreams streams(driver_, captures_);
  EXPECT_FALSE(Await(streams, {.then = 700}));  // an illegal address
  EXPECT_EQ(answers.queries, 1);
}

TEST_F(AwaitedEvents, AreNotAskedForInACapture) {
  DeviceStreams streams(driver_, captures_);
  EXPECT_FALSE(Await(streams, {.not_ready = INT64_MAX, .begins_capture = &captures_}));
  EXPECT_EQ(answers.queries, 1);
  captures_ = 0;
  EXPECT_TRUE(Await(streams, {.not_ready = 10})) << "the device is not to blame";
}

}  // namespace
}  // namespace reprise::replay::cuda
