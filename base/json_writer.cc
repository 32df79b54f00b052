#include "base/json_writer.h"

#include <nlohmann/json.hpp>

namespace reprise {

// Of single values nlohmann's destructor asks for nothing.
std::string JsonWriter::Text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string JsonWriter::Real(double number) { return nlohmann::json(number).dump(); }

void JsonWriter::Key(std::string_view name) {
  Put(Text(name));
  text_ += indent_ > 0 ? ": " : ":";
  after_key_ = true;
}

void JsonWriter::Begin(char bracket) {
  Put({&bracket, 1});
  ++depth_;
  first_ = true;
}

void JsonWriter::End(char bracket) {
  --depth_;
  if (!first_) BreakLine();
  text_ += bracket;
  first_ = false;
}

void JsonWriter::Put(std::string_view value) {
  Separate();
  text_ += value;
}

void JsonWriter::Separate() {
  if (!after_key_) {
    if (!first_) text_ += ',';
    if (depth_ > 0) BreakLine();
  }
  first_ = false;
  after_key_ = false;
}

void JsonWriter::BreakLine() {
  if (indent_ == 0) return;
  text_ += '\n';
  text_.append(depth_ * indent_, ' ');
}

}  // namespace reprise
