// A fault in a header of ours: lint looks into those, too.
#pragma once

#include <string>

namespace ridgeline {

class FromAnything {
 public:
  FromAnything(const std::string& text) : text_(text) {}  // google-explicit-constructor

 private:
  std::string text_;
};

}  // namespace ridgeline
