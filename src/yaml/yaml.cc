#include "yaml/yaml.h"

#include <time.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "base/error.h"
#include "base/text.h"
#include "yaml/common_mistakes.h"

namespace ridgeline::yaml {
namespace {

constexpr size_t kShownValue = 100;  // characters
constexpr size_t kShownMessage = 500;
constexpr size_t kHalfBytes = 6;  // "\\ud83d"

Place PlaceOf(const YAML::Mark& mark) { return mark.is_null() ? Place{} : Place{mark.line + 1, mark.column + 1}; }

bool AllOf(std::string_view text, std::string_view allowed) {
  return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
}

std::optional<Json> ParseInteger(std::string_view text, int base) {
  uint64_t magnitude = 0;
  const bool negative = text.front() == '-';
  if (text.front() == '-' || text.front() == '+') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), magnitude, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!negative) return Json(magnitude);
  if (magnitude > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
  return Json(-static_cast<int64_t>(magnitude));
}

// [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
std::optional<Json> ParseFloat(std::string_view text) {
  std::string_view rest = text;
  if (!rest.empty() && (rest.front() == '-' || rest.front() == '+')) rest.remove_prefix(1);
  if (rest == ".inf" || rest == ".Inf" || rest == ".INF") {
    const double infinity = std::numeric_limits<double>::infinity();
    return Json(text.front() == '-' ? -infinity : infinity);
  }
  if (text == ".nan" || text == ".NaN" || text == ".NAN") return Json(std::numeric_limits<double>::quiet_NaN());
  if (rest.empty() || !AllOf(rest, "0123456789.eE+-") || rest.front() == '-' || rest.front() == '+')
    return std::nullopt;
  if (text.front() == '+') text.remove_prefix(1);  // from_chars takes no plus
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    const bool tiny = text.find("e-") != std::string_view::npos || text.find("E-") != std::string_view::npos;
    value = tiny ? 0 : std::numeric_limits<double>::infinity();
  } else if (error != std::errc()) {
    return std::nullopt;
  }
  return Json(value);
}

Json PlainScalar(const std::string& text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return Json();
  if (text == "true" || text == "True" || text == "TRUE") return Json(true);
  if (text == "false" || text == "False" || text == "FALSE") return Json(false);
  const std::string_view all = text;
  const std::string_view digits = all.substr(all.front() == '-' || all.front() == '+' ? 1 : 0);
  std::optional<Json> number;
  if (AllOf(digits, "0123456789")) {
    number = ParseInteger(all, 10);
  } else if (all.starts_with("0x") && AllOf(all.substr(2), "0123456789abcdefABCDEF")) {
    number = ParseInteger(all.substr(2), 16);
  } else if (all.starts_with("0o") && AllOf(all.substr(2), "01234567")) {
    number = ParseInteger(all.substr(2), 8);
  }
  if (!number) number = ParseFloat(all);
  return number ? *number : Json(text);
}

Fault UnknownTag(const std::string& tag, const YAML::Mark& mark) {
  return {PlaceOf(mark), "the tag " + tag + " is not known here; write the plain value"};
}

Json Scalar(const std::string& tag, const std::string& scalar, const YAML::Mark& mark, std::string_view text) {
  if (tag == "?" || tag.empty()) return PlainScalar(scalar);
  if (tag == "!" && scalar.empty()) {
    const auto begin = std::min(text.size(), static_cast<size_t>(std::max(mark.pos, 0)));
    const std::string_view comparison = LeadingComparison(text.substr(begin));
    if (!comparison.empty()) throw Fault{PlaceOf(mark), BareComparison(comparison)};
  }
  if (tag == "!" || tag == "tag:yaml.org,2002:str") return Json(scalar);
  if (tag.starts_with("!=")) throw Fault{PlaceOf(mark), BareComparison(tag)};
  throw UnknownTag(tag, mark);
}

// Throws a Fault if the text has bytes that are not characters allowed in YAML, in UTF-8.
void RequireCharacters(std::string_view text) {
  Place place;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  while (!text.empty()) {
    const std::string_view before = text;
    const char32_t code = NextCodePoint(text);
    if (code == kBadCodePoint) {
      throw Fault{place, fmt::format("the byte {} is no UTF-8", Escape(code, before))};
    }
    if ((code < 0x20 && code != '\t' && code != '\n' && code != '\r') ||
        (code >= 0x7F && code < 0xA0 && code != 0x85)) {
      throw Fault{place, fmt::format("the control character {} cannot stand in YAML", Escape(code, before))};
    }
    ++place.column;
    if (code == '\n') place = {place.line + 1, 1};
  }
}

// Takes this thread's own time, so that a busy machine does not cause a file to be refused.
std::chrono::nanoseconds ProcessorTime() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// Builds the tree of one document within its limits.
class Builder final : public YAML::EventHandler {
 public:
  Builder(std::string_view text, const YamlLimits& limits)
      : text_(text), limits_(limits), ends_(ProcessorTime() + limits.time) {}

  bool empty() const { return documents_ == 0; }
  YamlNode TakeRoot() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 1) return;
    // Behind the end of a document, the library may see the beginnings of others without end.
    const auto at = static_cast<size_t>(std::max(mark.pos, 0));
    const bool stray = at < text_.size() && std::string_view(",:]}").find(text_[at]) != std::string_view::npos;
    throw Fault{PlaceOf(mark), stray ? fmt::format("this {} belongs to nothing that stands before it", text_[at])
                                     : "a second document begins here; a file holds one"};
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    // This is how {model:x} is read.
    if (!open_.empty() && open_.back().key_is_plain) {
      const Json& key = open_.back().key->scalar;
      const std::string mistake = key.is_string() ? JoinedColon(key.get_ref<const std::string&>()) : "";
      if (!mistake.empty()) throw Fault{open_.back().key->place, mistake};
    }
    YamlNode node;
    node.place = PlaceOf(mark);
    Spend(node.place, {1, 0});
    Put(std::move(node), {1, 0}, anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const Size size = {1, static_cast<int64_t>(value.size())};
    YamlNode node;
    node.place = PlaceOf(mark);
    Spend(node.place, size);
    node.scalar = Scalar(tag, value, mark, text_);
    Put(std::move(node), size, anchor, tag == "?");
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto known = anchors_.find(anchor);
    if (known == anchors_.end()) throw Fault{PlaceOf(mark), "this alias stands for something that contains it"};
    Spend(PlaceOf(mark), known->second.size);
    Put(known->second.node, known->second.size, 0);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Enter(YamlNode::Kind::kList, mark, tag, anchor);
  }
  void OnSequenceEnd() override { Leave(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Enter(YamlNode::Kind::kMap, mark, tag, anchor);
  }
  void OnMapEnd() override { Leave(); }

 private:
  struct Size {
    int64_t nodes = 0;
    int64_t text_bytes = 0;
  };
  struct Open {
    YamlNode node;
    Size size;
    YAML::anchor_t anchor = 0;
    std::optional<YamlNode> key;  // a map's key whose value comes next
    bool key_is_plain = false;
  };
  struct Anchored {
    YamlNode node;
    Size size;
  };

  void Spend(const Place& place, const Size& size) {
    spent_.nodes += size.nodes;
    spent_.text_bytes += size.text_bytes;
    if (spent_.nodes > limits_.nodes) {
      throw Fault{place,
                  fmt::format("with this the file holds more than {} values, its aliases written out", limits_.nodes)};
    }
    if (spent_.text_bytes > limits_.text_bytes) {
      throw Fault{place, fmt::format("with this the file holds more than {} of text, its aliases written out",
                                     FormatBytes(limits_.text_bytes))};
    }
    if (ProcessorTime() > ends_) {
      throw Fault{place, fmt::format("in {} s of a processor reading came as far as this, and the file goes on",
                                     std::chrono::duration<double>(limits_.time).count())};
    }
  }

  void Enter(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    const Place place = PlaceOf(mark);
    Spend(place, {1, 0});
    if (std::ssize(open_) == limits_.depth) throw Fault{place, "this is nested too deeply"};
    const std::string_view plain = kind == YamlNode::Kind::kMap ? "tag:yaml.org,2002:map" : "tag:yaml.org,2002:seq";
    if (!tag.empty() && tag != "?" && tag != "!" && tag != plain) throw UnknownTag(tag, mark);
    Open& open = open_.emplace_back();
    open.node.kind = kind;
    open.node.place = place;
    open.size = {1, 0};
    open.anchor = anchor;
  }

  void Leave() {
    Open closed = std::move(open_.back());
    open_.pop_back();
    Put(std::move(closed.node), closed.size, closed.anchor);
  }

  // Adds the node to the innermost open collection, as its next key, value or item.
  void Put(YamlNode node, const Size& size, YAML::anchor_t anchor, bool plain = false) {
    if (anchor != 0) {
      Spend(node.place, size);  // for the copy
      anchors_[anchor] = {node, size};
    }
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& open = open_.back();
    open.size.nodes += size.nodes;
    open.size.text_bytes += size.text_bytes;
    if (open.node.kind == YamlNode::Kind::kList) {
      open.node.items.push_back(std::move(node));
    } else if (!open.key) {
      open.key = std::move(node);
      open.key_is_plain = plain;
    } else {
      open.node.entries.push_back({*std::exchange(open.key, std::nullopt), std::move(node)});
      open.key_is_plain = false;
    }
  }

  std::string_view text_;
  const YamlLimits& limits_;
  std::chrono::nanoseconds ends_;
  int documents_ = 0;
  Size spent_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  YamlNode root_;
};

// Returns the surrogate half that JSON writes as "\ud83d" at `at`; 0 if there is none.
uint32_t HalfAt(std::string_view text, size_t at) {
  uint32_t half = 0;
  const std::string_view escape = text.substr(std::min(at, text.size()), kHalfBytes);
  if (escape.size() < kHalfBytes || !escape.starts_with("\\u")) return 0;
  const char* const digits = escape.data() + 2;
  const auto [end, error] = std::from_chars(digits, digits + 4, half, 16);
  return error == std::errc() && end == digits + 4 && half >= 0xD800 && half <= 0xDFFF ? half : 0;
}

// JSON is YAML with one exception: JSON escapes a character beyond U+FFFF as two halves, and YAML as one. `end` is
// behind the first half, in double quotes. Rewrites the rest of those quotes, or of the whole text if `all`, as YAML
// does. Returns false if there is no pair.
bool JoinHalves(std::string& text, size_t end, bool all) {
  if (end < kHalfBytes) return false;
  bool joined = false;
  for (size_t at = end - kHalfBytes; at < text.size() && (all || text[at] != '"'); ++at) {
    if (text[at] != '\\') continue;
    const uint32_t high = HalfAt(text, at);
    const uint32_t low = HalfAt(text, at + kHalfBytes);
    if (high != 0 && high < 0xDC00 && low >= 0xDC00) {
      const uint32_t character = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
      text.replace(at, 2 * kHalfBytes, fmt::format("\\U{:08x}", character));
      joined = true;
    } else if (!joined) {
      return false;
    }
    ++at;  // skips the escaped character
  }
  return joined;
}

YamlNode ParseOnce(std::string_view text, const YamlLimits& limits) {
  Builder builder(text, limits);
  std::istringstream in{std::string(text)};
  YAML::Parser parser(in);
  while (parser.HandleNextDocument(builder)) {
  }
  if (builder.empty()) throw Fault{{}, "the file is empty; a sweep is a mapping with a name"};
  return builder.TakeRoot();
}

}  // namespace

YamlNode ParseYaml(std::string_view text, const YamlLimits& limits) {
  if (text.size() > limits.bytes) {
    throw Fault{{}, fmt::format("the file is larger than {}", FormatBytes(static_cast<int64_t>(limits.bytes)))};
  }
  RequireCharacters(text);
  std::string joined(text);
  const auto ends = ProcessorTime() + limits.time;
  for (;;) {
    try {
      return ParseOnce(joined, limits);
    } catch (const YAML::Exception& e) {
      const bool may_be_half = e.msg.starts_with(YAML::ErrorMsg::INVALID_UNICODE) && e.mark.pos > 0;
      // In JSON, everything quoted is in double quotes.
      if (may_be_half && ProcessorTime() < ends &&
          JoinHalves(joined, static_cast<size_t>(e.mark.pos), Json::accept(joined))) {
        continue;
      }
      if (auto mistake = MistakeAt(text, PlaceOf(e.mark))) throw *std::move(mistake);
      throw Fault{PlaceOf(e.mark), "not YAML: " + e.msg};
    }
  }
}

Json ToJsonValue(const YamlNode& node, std::vector<Fault>& faults) {  // NOLINT(misc-no-recursion)
  if (node.kind == YamlNode::Kind::kScalar) return node.scalar;
  if (node.kind == YamlNode::Kind::kList) {
    Json list = Json::array();
    for (const YamlNode& item : node.items) list.push_back(ToJsonValue(item, faults));
    return list;
  }
  Json map = Json::object();
  for (const auto& [key, value] : node.entries) {
    const std::string name = key.scalar.is_string() ? key.scalar.get<std::string>() : Describe(key);
    if (map.contains(name)) faults.push_back({key.place, "'" + name + "' is given twice"});
    map[name] = ToJsonValue(value, faults);
  }
  return map;
}

std::string Describe(const YamlNode& node) {
  if (node.kind == YamlNode::Kind::kList) return "a list";
  if (node.kind == YamlNode::Kind::kMap) return "a mapping";
  if (node.scalar.is_number_float() && !std::isfinite(node.scalar.get<double>())) {
    return fmt::format("{}", node.scalar.get<double>());  // JSON has no literal for it
  }
  return node.scalar.is_null() ? "nothing" : ShortenToCodePoints(DumpJson(node.scalar), kShownValue);
}

std::string FaultText(const std::filesystem::path& file, const Fault& fault) {
  const std::string message = PrintableLine(ShortenToCodePoints(fault.message, kShownMessage));
  if (fault.place.line == kPlaceOfSet.line) return "-S: " + message;
  if (fault.place.line == kPlaceOfOnly.line) return "--only: " + message;
  return fmt::format("{}:{}:{}: {}", PrintableLine(file.string()), fault.place.line, fault.place.column, message);
}

void ThrowFaults(const std::filesystem::path& file, std::vector<Fault> faults, const std::string& hint) {
  static constexpr size_t kShown = 50;
  std::stable_sort(faults.begin(), faults.end(), [](const Fault& a, const Fault& b) {
    return std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
  });
  std::vector<std::string> lines;
  for (const Fault& fault : std::span(faults).first(std::min(faults.size(), kShown))) {
    lines.push_back(FaultText(file, fault));
  }
  if (faults.size() > kShown) lines.push_back(fmt::format("and {} more", faults.size() - kShown));
  throw Error(ErrorKind::kInvalidInput, Join(lines, "\n"), hint);
}

}  // namespace ridgeline::yaml
