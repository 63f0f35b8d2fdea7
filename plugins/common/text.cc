#include "common/text.h"

#include <algorithm>

#include "common/failure.h"

namespace ridgeline::plugin {

std::string OneLine(const std::string& text, size_t most) {
  std::string line = text.substr(0, most);
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  return Json::parse(Json(line).dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
}

}  // namespace ridgeline::plugin
