#include "yaml/yaml.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "base/error.h"
#include "base/text.h"
#include "yaml/slips.h"

namespace ridgeline {
namespace {

constexpr int64_t kMaxNodes = 2'000'000;
constexpr int kMaxDepth = 64;  // an anchor may hold an alias of itself

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

Json Scalar(const YAML::Node& node, std::string_view text) {
  const std::string& tag = node.Tag();
  if (tag == "?" || tag.empty()) return PlainScalar(node.Scalar());
  if (tag == "!" && node.Scalar().empty()) {
    const auto begin = std::min(text.size(), static_cast<size_t>(std::max(node.Mark().pos, 0)));
    const std::string_view comparison = LeadingComparison(text.substr(begin));
    if (!comparison.empty()) throw Fault{PlaceOf(node.Mark()), BareComparison(comparison)};
  }
  if (tag == "!" || tag == "tag:yaml.org,2002:str") return Json(node.Scalar());
  if (tag.starts_with("!=")) throw Fault{PlaceOf(node.Mark()), BareComparison(tag)};
  throw Fault{PlaceOf(node.Mark()), "the tag " + tag + " is not known here; write the plain value"};
}

// NOLINTNEXTLINE(misc-no-recursion)
YamlNode Convert(const YAML::Node& node, std::string_view text, int depth, int64_t& nodes_left) {
  YamlNode result;
  result.place = PlaceOf(node.Mark());
  if (depth > kMaxDepth) throw Fault{result.place, "this is nested too deeply"};
  if (--nodes_left < 0) throw Fault{result.place, "the file unfolds into too many values"};
  switch (node.Type()) {
    case YAML::NodeType::Sequence:
      result.kind = YamlNode::Kind::kList;
      result.items.reserve(node.size());
      for (const YAML::Node& item : node) result.items.push_back(Convert(item, text, depth + 1, nodes_left));
      break;
    case YAML::NodeType::Map:
      result.kind = YamlNode::Kind::kMap;
      for (const auto& entry : node) {
        YamlNode key = Convert(entry.first, text, depth + 1, nodes_left);
        if (entry.second.IsNull() && entry.first.Tag() == "?") {  // as {model:x} is read
          if (const std::string slip = JoinedColon(entry.first.Scalar()); !slip.empty()) throw Fault{key.place, slip};
        }
        result.entries.push_back({std::move(key), Convert(entry.second, text, depth + 1, nodes_left)});
      }
      break;
    case YAML::NodeType::Scalar:
      result.scalar = Scalar(node, text);
      break;
    case YAML::NodeType::Null:
    case YAML::NodeType::Undefined:
      break;
  }
  return result;
}

// Reads a file without keeping anything of it, and throws where it is more than one document of a sweep's size: what
// reads it whole afterwards goes as deep as it is nested, and never comes to the end of one like "{a: 1},".
class Survey final : public YAML::EventHandler {
 public:
  explicit Survey(std::string_view text) : text_(text) {}

  bool empty() const { return documents_ == 0; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 1) return;
    const auto at = static_cast<size_t>(std::max(mark.pos, 0));
    const bool stray = at < text_.size() && std::string_view(",:]}").find(text_[at]) != std::string_view::npos;
    throw Fault{PlaceOf(mark), stray ? fmt::format("this {} belongs to nothing that stands before it", text_[at])
                                     : "a second document begins here; a sweep file holds one"};
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { Count(mark); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { Count(mark); }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t, const std::string&) override {
    Count(mark);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    Enter(mark);
  }
  void OnSequenceEnd() override { --depth_; }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    Enter(mark);
  }
  void OnMapEnd() override { --depth_; }

 private:
  void Count(const YAML::Mark& mark) {
    if (++nodes_ > kMaxNodes) throw Fault{PlaceOf(mark), "the file holds too many values"};
  }
  void Enter(const YAML::Mark& mark) {
    Count(mark);
    if (++depth_ > kMaxDepth) throw Fault{PlaceOf(mark), "this is nested too deeply"};
  }

  std::string_view text_;
  int documents_ = 0;
  int64_t nodes_ = 0;
  int depth_ = 0;
};

}  // namespace

YamlNode ParseYaml(std::string_view text) {
  const std::string whole(text);
  try {
    Survey survey(text);
    std::istringstream in(whole);
    YAML::Parser parser(in);
    while (parser.HandleNextDocument(survey)) {
    }
    if (survey.empty()) throw Fault{{}, "the file is empty; a sweep is a mapping with a name"};
    int64_t nodes_left = kMaxNodes;
    return Convert(YAML::Load(whole), text, 0, nodes_left);
  } catch (const YAML::Exception& e) {
    if (auto slip = SlipAt(text, PlaceOf(e.mark))) throw *std::move(slip);
    throw Fault{PlaceOf(e.mark), "not YAML: " + e.msg};
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
    return fmt::format("{}", node.scalar.get<double>());  // JSON has no word for it
  }
  return node.scalar.is_null() ? "nothing" : DumpJson(node.scalar);
}

std::string FaultText(const std::filesystem::path& file, const Fault& fault) {
  return fmt::format("{}:{}:{}: {}", file.string(), fault.place.line, fault.place.column, fault.message);
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

}  // namespace ridgeline
