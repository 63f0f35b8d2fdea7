#include "gate/night_records.h"

#include <string>

#include "session/say.h"

namespace ridgeline {

std::vector<Night> NightsIn(const std::filesystem::path& folder) {
  std::vector<std::string> problems;
  std::vector<Night> nights = ReadNights(folder, &problems);
  for (const std::string& problem : problems) SayAside("warning: {}\n", problem);
  return nights;
}

}  // namespace ridgeline
