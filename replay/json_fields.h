// The fields of one object in a JSON file that anybody may have written: each is of the kind and within the
// limits that are asked for, or the first that is not is named.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace reprise::replay {

class JsonFields {
 public:
  // `object` outlives it. `where` begins what is said of it, as in "cycle 3".
  JsonFields(const nlohmann::json& object, std::string where);

  // What has to be there. Where it is not, or is something else, it is complained of, and the answer is the
  // least of its kind.
  const nlohmann::json* Any(const char* name);
  const nlohmann::json& Array(const char* name, size_t most);
  std::string Text(const char* name);
  int64_t Number(const char* name, int64_t least, int64_t most);
  int64_t Number(const nlohmann::json& value, std::string_view name, int64_t least, int64_t most);

  // What need not be there.
  std::string TextOr(const char* name, std::string otherwise);
  int64_t NumberOr(const char* name, int64_t otherwise, int64_t least, int64_t most);
  double RealOr(const char* name, double otherwise, double least, double most);
  bool TruthOr(const char* name, bool otherwise);

  void Complain(std::string_view what);
  // The first complaint; empty: there is none.
  const std::string& error() const { return error_; }

 private:
  const nlohmann::json* Find(const char* name) const;
  void ComplainOf(std::string_view name, std::string_view what);

  const nlohmann::json& object_;
  const std::string where_;
  std::string error_;
};

}  // namespace reprise::replay
