#include "tests/report/xml.h"

#include <gtest/gtest.h>

#include <set>

#include "base/text.h"

namespace ridgeline::report {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Elements Parse() {
    CheckCharacters();
    if (text_.starts_with("<!DOCTYPE html>\n")) at_ = 16;
    while (at_ < text_.size() && !failed_) {
      text_[at_] == '<' ? Tag() : Characters();
    }
    if (!failed_ && !open_.empty()) Fail("<" + open_.back() + "> is never closed");
    return std::move(elements_);
  }

 private:
  void Fail(const std::string& what) {
    if (!failed_) ADD_FAILURE() << what << " near: " << text_.substr(at_ < 60 ? 0 : at_ - 60, 160);
    failed_ = true;
  }

  void CheckCharacters() {
    for (std::string_view rest = text_; !rest.empty() && !failed_;) {
      at_ = text_.size() - rest.size();
      const char32_t code = NextCodePoint(rest);
      if (code == kBadCodePoint || (code < 0x20 && code != '\n' && code != '\t') || (code & 0xFFFEU) == 0xFFFEU) {
        Fail("a character that XML does not have");
      }
    }
    at_ = 0;
  }

  static bool NameCharacter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == ':';
  }

  std::string Name() {
    const size_t from = at_;
    while (at_ < text_.size() && NameCharacter(text_[at_])) ++at_;
    if (at_ == from) Fail("a name is missing");
    return std::string(text_.substr(from, at_ - from));
  }

  // Text up to `end`, with entities decoded.
  std::string Text(char end) {
    std::string out;
    while (at_ < text_.size() && text_[at_] != end) {
      if (text_[at_] == '<') {
        Fail("a bare <");
        return out;
      }
      if (text_[at_] == '&') {
        const size_t semicolon = text_.find(';', at_);
        const std::string_view entity = text_.substr(at_, semicolon - at_ + 1);
        static const std::vector<std::pair<std::string_view, char>> kEntities = {
            {"&amp;", '&'},  {"&lt;", '<'},   {"&gt;", '>'}, {"&quot;", '"'},
            {"&#39;", '\''}, {"&#10;", '\n'}, {"&#9;", '\t'}};
        const auto it =
            std::find_if(kEntities.begin(), kEntities.end(), [&](const auto& known) { return known.first == entity; });
        if (it == kEntities.end()) {
          Fail("an unknown entity");
          return out;
        }
        out += it->second;
        at_ = semicolon + 1;
      } else {
        out += text_[at_++];
      }
    }
    return out;
  }

  void Characters() {
    const std::string text = Text('<');
    if (open_.empty() && text.find_first_not_of(" \n") != std::string::npos) Fail("text outside the document");
    if (!open_.empty() && open_.back() == "text") elements_.shapes.back().text += text;
  }

  void Tag() {
    ++at_;
    if (text_[at_] == '/') {
      ++at_;
      const std::string name = Name();
      if (open_.empty() || open_.back() != name) return Fail("</" + name + "> closes nothing");
      open_.pop_back();
      if (text_[at_++] != '>') Fail("'>' is missing");
      return;
    }
    const std::string name = Name();
    elements_.names.push_back(name);
    Elements::Shape shape{name, {}, {}};
    std::set<std::string> seen;
    while (!failed_ && at_ < text_.size() && text_[at_] == ' ') {
      while (text_[at_] == ' ') ++at_;
      if (text_[at_] == '/' || text_[at_] == '>') break;
      const std::string attribute = Name();
      if (text_.substr(at_, 2) != "=\"") return Fail("an attribute without a value in double quotes");
      at_ += 2;
      const std::string value = Text('"');
      ++at_;
      if (!seen.insert(attribute).second) Fail("the attribute " + attribute + " twice");
      Note(attribute, value);
      shape.attributes.emplace_back(attribute, value);
    }
    if (name == "text" || name == "rect" || name == "path" || name == "circle") {
      elements_.shapes.push_back(std::move(shape));
    }
    if (text_.substr(at_, 2) == "/>") {
      at_ += 2;
      return;
    }
    if (at_ >= text_.size() || text_[at_++] != '>') return Fail("'>' is missing");
    open_.push_back(name);
  }

  void Note(const std::string& attribute, const std::string& value) {
    elements_.attributes.push_back(attribute);
    if (attribute == "id") elements_.ids.push_back(value);
    if (attribute == "href") elements_.references.push_back(value.substr(1));
    if (value.starts_with("url(#")) elements_.references.push_back(value.substr(5, value.size() - 6));
    if (attribute == "aria-labelledby") {
      const size_t space = value.find(' ');
      elements_.references.push_back(value.substr(0, space));
      if (space != std::string::npos) elements_.references.push_back(value.substr(space + 1));
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  bool failed_ = false;
  std::vector<std::string> open_;
  Elements elements_;
};

}  // namespace

Elements ParseXml(std::string_view text) { return Parser(text).Parse(); }

}  // namespace ridgeline::report
