// What a job's process leaves is read by others: it must be JSON, with the values that were put in.
#include "base/json_writer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

namespace reprise {
namespace {

std::string Written(size_t indent) {
  JsonWriter json(indent);
  json.BeginObject();
  json.Field("truth", true);
  json.Field("most", std::numeric_limits<uint64_t>::max());
  json.Field("least", std::numeric_limits<int64_t>::min());
  json.Field("real", 0.25);
  json.Field("whole real", 1.0);
  json.Field("a \"key\"\n", "t\\xt");
  json.Key("list");
  json.BeginArray();
  json.Value(1);
  json.BeginObject();
  json.EndObject();
  json.BeginArray();
  json.EndArray();
  json.Value("");
  json.EndArray();
  json.EndObject();
  return json.text();
}

TEST(JsonWriter, WritesWhatNlohmannDoes) {
  nlohmann::ordered_json json = {{"truth", true},
                                 {"most", std::numeric_limits<uint64_t>::max()},
                                 {"least", std::numeric_limits<int64_t>::min()},
                                 {"real", 0.25},
                                 {"whole real", 1.0},
                                 {"a \"key\"\n", "t\\xt"}};
  json["list"] = {1, nlohmann::ordered_json::object(), nlohmann::ordered_json::array(), ""};
  EXPECT_EQ(Written(0), json.dump());
  EXPECT_EQ(Written(2), json.dump(2));
}

TEST(JsonWriter, ReplacesWhatIsNotText) {
  JsonWriter json;
  json.Value("caf\xe9");
  EXPECT_EQ(json.text(), "\"caf\xef\xbf\xbd\"");
}

TEST(JsonWriter, WritesNoNumberWhereThereIsNone) {
  JsonWriter json;
  json.Value(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(json.text(), "null");
}

}  // namespace
}  // namespace reprise
