#include "gate/night_records.h"

#include <string>

#include "session/say.h"

namespace ridgeline::gate {

std::vector<regress::Night> NightsIn(const std::filesystem::path& folder) {
  std::vector<std::string> problems;
  std::vector<regress::Night> nights = regress::ReadNights(folder, &problems);
  for (const std::string& problem : problems) session::SayAside("warning: {}\n", problem);
  return nights;
}

}  // namespace ridgeline::gate
