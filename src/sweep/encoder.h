// EncodePoint for many specs in a row: a field's text is made again only where its value changed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ridgeline/run.h"

namespace ridgeline {

class SpecEncoder {
 public:
  SpecEncoder();

  // Equal to EncodePoint(spec); valid until the next call.
  std::string_view Encode(const RunSpec& spec);

 private:
  RunSpec last_;
  bool first_ = true;
  std::vector<std::string> fragments_;  // one a field, with the separator before it
  size_t own_at_;                       // what is the trainer's own goes before this field's
  size_t version_at_;                   // and the version here
  std::string version_;
  std::string out_;
};

}  // namespace ridgeline
