#include "trainers/expression.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "run/fields.h"

namespace ridgeline::trainers {
namespace {

constexpr size_t kMostBytes = 1024;
constexpr size_t kMostParts = 256;
constexpr size_t kMostNested = 16;      // parentheses and signs within each other
constexpr size_t kShownPartBytes = 80;  // of a name or text

[[noreturn]] void Refuse(const std::string& message) { throw Error(ErrorKind::kInvalidInput, message); }

bool IsWordChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

// Returns a negative number if a < b, 0 if they are equal.
int Compared(int64_t a, int64_t b) { return a < b ? -1 : a > b ? 1 : 0; }

}  // namespace

struct Expression::Node {
  enum class Kind { kNumber, kWord, kName, kAdd, kSubtract, kMultiply, kDivide, kRemainder, kCompare, kAnd, kOr };
  Kind kind = Kind::kNumber;
  int64_t number = 0;
  std::string text;  // a word, a name, or a comparison sign
  std::shared_ptr<const Node> left, right;

  bool is_condition() const { return kind == Kind::kCompare || kind == Kind::kAnd || kind == Kind::kOr; }

  FieldValue Value(const Lookup& lookup) const {
    if (kind == Kind::kNumber) return number;
    if (kind == Kind::kWord) return text;
    if (kind == Kind::kName) {
      const std::optional<FieldValue> found = lookup(text);
      if (!found) Refuse(fmt::format("{} has no value here", ShortenToBytes(text, kShownPartBytes)));
      return *found;
    }
    return Counted(lookup);
  }

  int64_t Number(const Lookup& lookup) const {
    const FieldValue value = Value(lookup);
    if (const auto* whole = std::get_if<int64_t>(&value)) return *whole;
    Refuse(fmt::format("{} is {}, and no whole number", text, ShortenToBytes(ValueText(value), kShownPartBytes)));
  }

  int64_t Counted(const Lookup& lookup) const {
    const int64_t a = left->Number(lookup);
    const int64_t b = right->Number(lookup);
    int64_t result = 0;
    bool beyond = false;
    if (kind == Kind::kAdd) {
      beyond = __builtin_add_overflow(a, b, &result);
    } else if (kind == Kind::kSubtract) {
      beyond = __builtin_sub_overflow(a, b, &result);
    } else if (kind == Kind::kMultiply) {
      beyond = __builtin_mul_overflow(a, b, &result);
    } else if (b == 0) {
      Refuse(fmt::format("{} is divided by 0", a));
    } else if (b == -1) {  // dividing the least number by -1 overflows
      beyond = kind == Kind::kDivide && __builtin_sub_overflow(int64_t{0}, a, &result);
    } else if (kind == Kind::kDivide) {
      if (a % b != 0) Refuse(fmt::format("{} / {} is not a whole number", a, b));
      result = a / b;
    } else {
      result = a % b;
    }
    if (beyond) Refuse("it is beyond 64 bits");
    return result;
  }

  bool Holds(const Lookup& lookup) const {
    if (kind == Kind::kAnd) return left->Holds(lookup) && right->Holds(lookup);
    if (kind == Kind::kOr) return left->Holds(lookup) || right->Holds(lookup);
    const FieldValue a = left->Value(lookup);
    const FieldValue b = right->Value(lookup);
    const bool is_equality = text == "==" || text == "!=";
    const bool counts = std::holds_alternative<int64_t>(a) && std::holds_alternative<int64_t>(b);
    if (!counts && !is_equality) {
      left->Number(lookup);  // the one that is no number throws
      right->Number(lookup);
    }
    const int compared =
        counts ? Compared(std::get<int64_t>(a), std::get<int64_t>(b)) : ValueText(a).compare(ValueText(b));
    if (text == "==") return compared == 0;
    if (text == "!=") return compared != 0;
    if (text == "<") return compared < 0;
    if (text == "<=") return compared <= 0;
    if (text == ">") return compared > 0;
    return compared >= 0;
  }
};

class Expression::Parser {
 public:
  using IsName = std::function<bool(std::string_view)>;
  Parser(std::string_view text, std::vector<std::string>& names, const IsName& is_name)
      : rest_(text), names_(names), is_name_(is_name) {}

  std::shared_ptr<const Node> Whole() {
    auto root = Or(0);
    if (!Trim(rest_).empty()) {
      Refuse(fmt::format("'{}' does not belong here", ShortenToBytes(std::string(Trim(rest_)), kShownPartBytes)));
    }
    if (root->kind == Kind::kWord) Refuse(fmt::format("{} is a text", ShortenToBytes(root->text, kShownPartBytes)));
    return root;
  }

 private:
  using Kind = Node::Kind;
  using Pointer = std::shared_ptr<const Node>;

  bool Take(std::string_view sign) {
    rest_ = Trim(rest_);
    if (!rest_.starts_with(sign)) return false;
    const bool is_word = IsWordChar(sign.front());
    if (is_word && rest_.size() > sign.size() && IsWordChar(rest_[sign.size()])) return false;
    rest_.remove_prefix(sign.size());
    return true;
  }

  Pointer Make(Node node) {
    if (++nodes_ > kMostParts) Refuse(fmt::format("it has more than {} parts", kMostParts));
    return std::make_shared<const Node>(std::move(node));
  }

  Pointer Pair(Kind kind, Pointer left, Pointer right, std::string_view sign = {}) {
    const bool of_conditions = kind == Kind::kAnd || kind == Kind::kOr;
    for (const Pointer& side : {left, right}) {
      if (side->is_condition() != of_conditions) {
        Refuse(of_conditions ? "`and` and `or` join comparisons" : "a comparison is not a number");
      }
    }
    RefuseText(*left, *right, kind, sign);
    RefuseText(*right, *left, kind, sign);
    return Make({kind, 0, std::string(sign), std::move(left), std::move(right)});
  }

  // A text is compared with a name's value, by == or !=, and nothing else.
  static void RefuseText(const Node& side, const Node& other, Kind kind, std::string_view sign) {
    if (side.kind != Kind::kWord) return;
    if (kind == Kind::kCompare && (sign == "==" || sign == "!=") && other.kind == Kind::kName) return;
    Refuse(fmt::format("{} is a text, and no number to {} with", ShortenToBytes(side.text, kShownPartBytes),
                       kind == Kind::kCompare ? "compare" : "count"));
  }

  Pointer Or(size_t depth) {
    Pointer left = And(depth);
    while (Take("or")) left = Pair(Kind::kOr, left, And(depth));
    return left;
  }

  Pointer And(size_t depth) {
    Pointer left = Comparison(depth);
    while (Take("and")) left = Pair(Kind::kAnd, left, Comparison(depth));
    return left;
  }

  Pointer Comparison(size_t depth) {
    Pointer left = Sum(depth);
    for (const std::string_view sign : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (Take(sign)) return Pair(Kind::kCompare, left, Sum(depth), sign);
    }
    return left;
  }

  Pointer Sum(size_t depth) {
    Pointer left = Product(depth);
    for (;;) {
      if (Take("+")) {
        left = Pair(Kind::kAdd, left, Product(depth));
      } else if (Take("-")) {
        left = Pair(Kind::kSubtract, left, Product(depth));
      } else {
        return left;
      }
    }
  }

  Pointer Product(size_t depth) {
    Pointer left = Single(depth);
    for (;;) {
      if (Take("*")) {
        left = Pair(Kind::kMultiply, left, Single(depth));
      } else if (Take("/")) {
        left = Pair(Kind::kDivide, left, Single(depth));
      } else if (Take("%")) {
        left = Pair(Kind::kRemainder, left, Single(depth));
      } else {
        return left;
      }
    }
  }

  Pointer Single(size_t depth) {
    if (depth > kMostNested) Refuse(fmt::format("more than {} parentheses in each other", kMostNested));
    if (Take("-")) return Pair(Kind::kSubtract, Make({}), Single(depth + 1));
    if (Take("{{")) return Name();
    if (Take("(")) {
      Pointer inside = Or(depth + 1);
      if (!Take(")")) Refuse("a parenthesis is not closed");
      return inside;
    }
    rest_ = Trim(rest_);
    const auto end = std::find_if_not(rest_.begin(), rest_.end(), IsWordChar);
    const std::string_view word(rest_.begin(), end);
    if (word.empty() || word == "and" || word == "or") {
      Refuse(rest_.empty()
                 ? "it ends where a value is missing"
                 : fmt::format("a value is missing before '{}'", ShortenToBytes(std::string(rest_), kShownPartBytes)));
    }
    rest_.remove_prefix(word.size());
    if (is_name_ && is_name_(word)) return Named(std::string(word));
    if (word.front() < '0' || word.front() > '9') return Make({Kind::kWord, 0, std::string(word), {}, {}});
    Node node;
    const auto [last, error] = std::from_chars(word.data(), word.data() + word.size(), node.number);
    if (error != std::errc() || last != word.data() + word.size()) {
      Refuse(fmt::format("{} is not a whole number", ShortenToBytes(std::string(word), kShownPartBytes)));
    }
    return Make(std::move(node));
  }

  Pointer Name() {
    const size_t close = rest_.find("}}");
    const std::string name(Trim(rest_.substr(0, close)));
    if (close == std::string_view::npos || name.empty() || !std::all_of(name.begin(), name.end(), IsWordChar)) {
      Refuse("{{ is followed by a name and }}, without a filter");
    }
    rest_.remove_prefix(close + 2);
    return Named(name);
  }

  Pointer Named(const std::string& name) {
    if (std::find(names_.begin(), names_.end(), name) == names_.end()) names_.push_back(name);
    return Make({Kind::kName, 0, name, {}, {}});
  }

  std::string_view rest_;
  std::vector<std::string>& names_;
  const IsName& is_name_;
  size_t nodes_ = 0;
};

Expression::Expression(std::string_view text, const std::function<bool(std::string_view)>& is_name) {
  if (text.size() > kMostBytes) Refuse(fmt::format("it has more than {} bytes", kMostBytes));
  root_ = Parser(text, names_, is_name).Whole();
  for (const char c : Trim(text)) {
    if (c != '{' && c != '}') words_ += c;
  }
}

bool Expression::is_condition() const { return root_->is_condition(); }

int64_t Expression::Number(const Lookup& lookup) const { return root_->Number(lookup); }

bool Expression::Holds(const Lookup& lookup) const { return root_->Holds(lookup); }

}  // namespace ridgeline::trainers
