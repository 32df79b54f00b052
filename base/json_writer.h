// JSON, written as it comes. For what is written in a job's process: nlohmann's arrays and objects ask for memory when
// they are destroyed too, and where there is none end the process. Here a failed allocation is an exception like any.
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

namespace reprise {

class JsonWriter {
 public:
  // `indent`: by how much a line is deeper than the one that it is in; 0: all on one line.
  explicit JsonWriter(size_t indent = 0) : indent_(indent) {}

  // A text as it stands in JSON, quotes and all. What is not UTF-8 is replaced.
  static std::string Text(std::string_view text);

  void BeginObject() { Begin('{'); }
  void EndObject() { End('}'); }
  void BeginArray() { Begin('['); }
  void EndArray() { End(']'); }

  // In an object, before a value.
  void Key(std::string_view name);
  // A text, a number or a truth. Of a text that is not UTF-8 what is not is replaced.
  template <typename T>
  void Value(const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      Put(value ? "true" : "false");
    } else if constexpr (std::integral<T>) {
      Put(std::to_string(value));
    } else if constexpr (std::floating_point<T>) {
      Put(Real(value));
    } else {
      Put(Text(value));
    }
  }
  template <typename T>
  void Field(std::string_view name, const T& value) {
    Key(name);
    Value(value);
  }

  const std::string& text() const { return text_; }

 private:
  static std::string Real(double number);
  void Begin(char bracket);
  void End(char bracket);
  void Put(std::string_view value);
  void Separate();
  void BreakLine();

  const size_t indent_;
  std::string text_;
  size_t depth_ = 0;
  bool first_ = true;  // in its array or object
  bool after_key_ = false;
};

}  // namespace reprise
