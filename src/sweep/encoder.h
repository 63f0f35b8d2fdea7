// EncodePoint for many specs in a row. Makes a field's text again only if its value changed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ridgeline/run.h"

namespace ridgeline::sweep {

class SpecEncoder {
 public:
  SpecEncoder();

  // Equals EncodePoint(spec). Valid until the next call.
  std::string_view Encode(const RunSpec& spec);

 private:
  RunSpec last_;
  bool first_ = true;
  std::vector<std::string> fragments_;  // one for each field, with the separator before it
  size_t own_at_;                       // the trainer's own fields go before this field
  size_t version_at_;                   // the version goes before this field
  std::string version_;
  std::string out_;
};

}  // namespace ridgeline::sweep
