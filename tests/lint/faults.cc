// A fault for each kind of what clang-tidy has to find, most of them in what the standard library declares. Each stands
// on a line that ends with the name of its check: scripts/clang-tidy.sh asks for exactly these.
#include "tests/lint/include/faults.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace elsewhere {
class Point;  // bugprone-forward-declaration-namespace
}  // namespace elsewhere

namespace ridgeline {

using std::exchange;  // misc-unused-using-decls

class Point {
  int x_ = 0;
};

class Failure : public std::exception {
 public:
  const char* what() const noexcept { return "failure"; }  // modernize-use-override
};

class Base {
 public:
  virtual ~Base() = default;
  virtual int Depth() { return 0; }
  virtual void Measure(int steps) {}
};

class Middle : public Base {
 public:
  int Depth() override { return 1; }
  virtual void Mesure(int steps) {}  // bugprone-virtual-near-miss
};

class Leaf : public Middle {
 public:
  int Depth() override { return Base::Depth() + 1; }  // bugprone-parent-virtual-call
};

class Moved {
 public:
  explicit Moved(std::string text) : text_(text) {}        // performance-unnecessary-value-param
  Moved(Moved&& other) : text_(std::move(other.text_)) {}  // performance-noexcept-move-constructor

 private:
  std::string text_;
};

size_t SizeOf(const std::vector<int>& values) {
  return sizeof(values);  // bugprone-sizeof-container
}

size_t Length(const std::vector<std::string> names) {  // performance-unnecessary-value-param
  return names.size();
}

std::string AfterMove(std::string text) {
  std::string taken = std::move(text);
  return taken + text;  // bugprone-use-after-move
}

bool IsEmpty(const std::vector<int>& values) {
  return values.size() == 0;  // readability-container-size-empty
}

size_t Find(const std::string& text) {
  return text.find("x");  // performance-faster-string-find
}

void Erase(std::vector<int>& values) {
  values.erase(std::remove(values.begin(), values.end(), 0));  // bugprone-inaccurate-erase
}

void Unused(std::vector<int>& values) {
  std::remove(values.begin(), values.end(), 0);  // bugprone-unused-return-value
}

std::unique_ptr<Moved> Make() {
  return std::unique_ptr<Moved>(new Moved("text"));  // modernize-make-unique
}

void Emplace(std::vector<std::pair<int, int>>& pairs) {
  pairs.push_back(std::make_pair(1, 2));  // modernize-use-emplace
}

size_t Copies(const std::map<std::string, std::string>& texts) {
  size_t count = 0;
  for (const auto pair : texts) {  // performance-for-range-copy
    count += pair.second.size();
  }
  return count;
}

size_t CopiesOnce(const std::vector<std::string>& texts) {
  const std::string first = texts.at(0);  // performance-unnecessary-copy-initialization
  return first.size();
}

int Sum(const std::vector<int>& values) {
  int sum = 0;
  for (size_t i = 0; i < values.size(); ++i) {  // modernize-loop-convert
    sum += values[i];
  }
  return sum;
}

int64_t Wide(int rows, int columns) {
  return rows * columns;  // bugprone-implicit-widening-of-multiplication-result
}

bool Differ(const Moved& a, const Moved& b) {
  return std::memcmp(&a, &b, sizeof(Moved)) != 0;  // bugprone-suspicious-memory-comparison
}

void Clear(Moved& moved) {
  std::memset(&moved, 0, sizeof(moved));  // bugprone-undefined-memory-manipulation
}

int Dropped() {
  Moved("text");  // bugprone-unused-raii
  return 0;
}

int Branch(bool first) {
  if (first) {  // bugprone-branch-clone
    return Sum({});
  } else {
    return Sum({});
  }
}

void Forever(const std::vector<int>& values) {
  int i = 0;
  while (i < 10) {  // bugprone-infinite-loop
    IsEmpty(values);
  }
}

}  // namespace ridgeline
