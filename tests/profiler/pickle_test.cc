// Why: a pickle is a program, and one from a stranger a hostile one. The reader has to take the data and run
// nothing, name the byte where it stops, and not be made to take memory that the file does not pay for.
#include "profiler/pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/profiler/pickle_script.h"
#include "tests/profiler/testing.h"

namespace reprise::profiler {
namespace {

using testing::HasSubstr;

// Literals with bytes of zero in them.
template <size_t N>
std::string Bytestring(const char (&text)[N]) {
  return std::string(text, N - 1);
}

std::string PickleError(const std::string& contents) {
  const auto pickle = ParsePickle(contents, "p.pickle");
  return pickle.ok() ? "no error" : Text(pickle.status());
}

// Of a pickle of one value.
std::optional<int64_t> IntegerOf(const std::string& value) {
  const std::string contents = Pickled(value);
  const auto pickle = ParsePickle(contents, "p.pickle");
  EXPECT_TRUE(pickle.ok()) << pickle.status();
  return pickle.ok() ? pickle->root().integer() : std::nullopt;
}

TEST(Pickle, Integers) {
  EXPECT_EQ(IntegerOf(Bytestring("K\xff")), 255);
  EXPECT_EQ(IntegerOf(Bytestring("M\x01\x02")), 513);
  EXPECT_EQ(IntegerOf(Bytestring("J\xff\xff\xff\xff")), -1);
  EXPECT_EQ(IntegerOf(Bytestring("\x8a\x00")), 0);
  EXPECT_EQ(IntegerOf(Bytestring("\x8a\x01\xfe")), -2);
  EXPECT_EQ(IntegerOf(Bytestring("\x8a\x05\x00\x00\x00\x00\x01")), int64_t{1} << 32);
  EXPECT_EQ(IntegerOf(Bytestring("\x8b\x02\x00\x00\x00\x00\x01")), 256);
  EXPECT_EQ(IntegerOf("\x88"), 1);
  EXPECT_EQ(IntegerOf("\x89"), 0);
  EXPECT_EQ(IntegerOf(Bytestring("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01")), std::nullopt) << "2^64";
  EXPECT_EQ(IntegerOf("N"), std::nullopt);
  EXPECT_EQ(IntegerOf(Bytestring("G\x3f\xf0\x00\x00\x00\x00\x00\x00")), std::nullopt);
}

TEST(Pickle, Strings) {
  for (const std::string& value :
       {Bytestring("\x8c\x02hi"), Bytestring("X\x02\x00\x00\x00hi"),
        Bytestring("\x8d\x02\x00\x00\x00\x00\x00\x00\x00hi"), Bytestring("U\x02hi")}) {
    const std::string contents = Pickled(value);
    const auto pickle = ParsePickle(contents, "p.pickle");
    ASSERT_TRUE(pickle.ok()) << pickle.status();
    EXPECT_EQ(pickle->root().string(), "hi");
  }
  const std::string bytes = Pickled(Bytestring("C\x02hi"));
  EXPECT_EQ(ParsePickle(bytes, "")->root().string(), std::nullopt) << "bytes are no str";
}

TEST(Pickle, Containers) {
  const std::string contents =
      Pickled(PickledDict({{"list", PickledList({"K\x01", "K\x02"})},
                           {"pair", "K\x03K\x04\x86"},
                           {"marked", "(K\x05K\x06K\x07K\x08t"},
                           {"none", Bytestring(")")},
                           {"set", "\x8f(K\x01\x90"}}) +
              "X" + Little(4, 4) + "last" + "K\x09s" + "X" + Little(4, 4) + "last" + "K\x0as");
  const auto pickle = ParsePickle(contents, "p.pickle");
  ASSERT_TRUE(pickle.ok()) << pickle.status();
  const PickleValue root = pickle->root();
  EXPECT_EQ(root.size(), 7u);
  const PickleValue list = *root.Find("list");
  EXPECT_TRUE(list.is_sequence());
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[1].integer(), 2);
  EXPECT_EQ((*root.Find("pair"))[1].integer(), 4);
  EXPECT_EQ(root.Find("marked")->size(), 4u);
  EXPECT_EQ(root.Find("none")->size(), 0u);
  EXPECT_EQ(root.Find("set")->kind(), Pickle::Kind::kSet);
  EXPECT_EQ(root.Find("last")->integer(), 10) << "the later of two keys counts";
  EXPECT_FALSE(root.Find("nowhere").has_value());
  EXPECT_FALSE(list.Find("x").has_value());
}

TEST(Pickle, TheMemoGivesTheSameValueAgain) {
  // A list of one string three times: put by MEMOIZE, BINPUT and LONG_BINPUT.
  const std::string contents =
      Pickled(Bytestring("](\x8c\x01s\x94h\x00q\x05h\x05r\x00\x01\x00\x00j\x00\x01\x00\x00"
                         "e"));
  const auto pickle = ParsePickle(contents, "p.pickle");
  ASSERT_TRUE(pickle.ok()) << pickle.status();
  ASSERT_EQ(pickle->root().size(), 4u);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(pickle->root()[i].string(), "s");
}

TEST(Pickle, AListMayHoldItself) {
  const std::string contents =
      Pickled(Bytestring("]\x94h\x00"
                         "a"));
  const auto pickle = ParsePickle(contents, "p.pickle");
  ASSERT_TRUE(pickle.ok()) << pickle.status();
  EXPECT_EQ(pickle->root()[0][0][0].size(), 1u);
}

TEST(Pickle, WhatWouldRunCodeIsRefusedByNameAndByte) {
  struct Hostile {
    std::string opcodes;
    const char* name;
  };
  for (const Hostile& hostile :
       {Hostile{"cos\nsystem\n", "GLOBAL"}, Hostile{"\x93", "STACK_GLOBAL"}, Hostile{"R", "REDUCE"},
        Hostile{"b", "BUILD"}, Hostile{"ios\nsystem\n", "INST"}, Hostile{"o", "OBJ"},
        Hostile{"\x81", "NEWOBJ"}, Hostile{"\x92", "NEWOBJ_EX"}, Hostile{"\x82\x01", "EXT1"},
        Hostile{"\x83\x01\x01", "EXT2"}, Hostile{"\x84\x01\x01\x01\x01", "EXT4"}, Hostile{"Pid\n", "PERSID"},
        Hostile{"Q", "BINPERSID"}, Hostile{"\x97", "NEXT_BUFFER"}, Hostile{"\x98", "READONLY_BUFFER"}}) {
    const std::string error = PickleError(Pickled("]" + hostile.opcodes));
    EXPECT_THAT(error, HasSubstr("p.pickle: byte 3: " + std::string(hostile.name) + " would run code"))
        << error;
  }
}

TEST(Pickle, OpcodesThatDataDoesNotNeedAreRefused) {
  for (const char opcode : {'I', 'L', 'F', 'S', 'V', 'p', 'g', '0', '1', '2', '\x99', '\xff', '\0'}) {
    EXPECT_THAT(PickleError(Pickled(std::string("]") + opcode)), HasSubstr("byte 3: opcode 0x"));
  }
}

TEST(Pickle, LengthsThatTheFileDoesNotHave) {
  for (const std::string& value :
       {Bytestring("X\xff\xff\xff\xff"
                   "abc"),
        Bytestring("\x8d\xff\xff\xff\xff\xff\xff\xff\xff"
                   "abc"),
        Bytestring("B\xff\xff\xff\x7f"), Bytestring("\x8b\xff\xff\xff\xff\x01"), Bytestring("\x8a\xff\x01"),
        Bytestring("\x96\xff\xff\xff\xff\xff\xff\xff\x7f"), Bytestring("M\x01")}) {
    EXPECT_THAT(PickleError("\x80\x04" + value), HasSubstr("byte 2: "));
    EXPECT_THAT(PickleError("\x80\x04" + value), HasSubstr("announced"));
  }
}

TEST(Pickle, AnyPrefixIsAnError) {
  const std::string contents = Pickled(PickledDict({{"a", PickledList({"K\x01", PickledString("x")})}}));
  ASSERT_EQ(PickleError(contents), "no error");
  for (size_t length = 0; length < contents.size(); ++length) {
    EXPECT_THAT(PickleError(contents.substr(0, length)), HasSubstr("p.pickle: byte ")) << length;
  }
}

TEST(Pickle, AStackThatDoesNotHaveIt) {
  for (const std::string& opcodes : {Bytestring("a"),
                                     Bytestring("]a"),
                                     Bytestring("K\x01K\x01"
                                                "a"),
                                     Bytestring("](K\x01"
                                                "a"),
                                     Bytestring("e"),
                                     Bytestring("(e"),
                                     Bytestring("(K\x01"
                                                "e"),
                                     Bytestring("](K\x01u"),
                                     Bytestring("}(K\x01u"),
                                     Bytestring("}K\x01s"),
                                     Bytestring("t"),
                                     Bytestring("\x86"),
                                     Bytestring("(K\x01\x86"),
                                     Bytestring("(K\x01"
                                                "d"),
                                     Bytestring("h\x00"),
                                     Bytestring("\x94"),
                                     Bytestring("q\x00"),
                                     Bytestring(""),
                                     Bytestring("K\x01K\x01"),
                                     Bytestring("(K\x01")}) {
    EXPECT_THAT(PickleError(Pickled(opcodes)), HasSubstr("p.pickle: byte "));
  }
}

TEST(Pickle, OtherProtocolsAndOtherFiles) {
  for (const std::string& contents :
       {Bytestring(""), Bytestring("\x80"), Bytestring("\x80\x01."), Bytestring("\x80\x06N."),
        Bytestring("(lp0\n."), Bytestring("id,lower\n")}) {
    EXPECT_FALSE(LooksLikePickle(contents));
    EXPECT_THAT(PickleError(contents), HasSubstr("not a pickle of protocol 2 to 5"));
  }
  EXPECT_THAT(PickleError(Pickled("N") + "N."), HasSubstr("byte 4: 2 bytes after the end"));
}

TEST(Pickle, ValuesAreCountedAgainstALimit) {
  const std::string contents = Pickled("](" + std::string(1000, 'N') + "e");
  EXPECT_TRUE(ParsePickle(contents, "p.pickle", 1001).ok());
  EXPECT_EQ(ParsePickle(contents, "p.pickle", 1000).status().code(), absl::StatusCode::kResourceExhausted);
}

// Ten million entries have a hundred million values: what was recorded is read, however much it is.
TEST(Pickle, TheLimitGrowsWithTheFile) {
  constexpr size_t kValues = 100'000'000, kLeastBytesForOne = 8;
  EXPECT_GE(MostPickleValues(kValues * kLeastBytesForOne), kValues);
  EXPECT_EQ(MostPickleValues(1), MostPickleValues(1000));
}

}  // namespace
}  // namespace reprise::profiler
