#include "trainers/find.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "base/user_folders.h"
#include "run/spec.h"
#include "yaml/entries.h"

namespace ridgeline::trainers {
namespace fs = std::filesystem;
namespace {

// A sweep for torchtitan is often named torchtitan.yaml, too. Devices and frameworks also have an `about`.
bool MayBeTrainer(const fs::path& file) {
  static const yaml::Names kKeys = {"name", "version", "tested", "tested_on", "result", "metrics", "ends", "command"};
  return !yaml::IsOfAnotherKind(file, kKeys);
}

// Returns the numbers of a release such as `0.10.2`, without leading zeros; nothing for other words, such as `main`.
std::optional<std::vector<std::string>> ReleaseNumbers(std::string_view release) {
  std::vector<std::string> numbers(1);
  for (const char c : release) {
    if (c == '.') {
      numbers.emplace_back();
    } else if (c < '0' || c > '9') {
      return std::nullopt;
    } else {
      numbers.back() += c;
    }
  }
  for (std::string& number : numbers) {
    if (number.empty()) return std::nullopt;
    number.erase(0, std::min(number.find_first_not_of('0'), number.size() - 1));
  }
  return numbers;
}

bool IsLower(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), [](const auto& one, const auto& other) {
    return one.size() != other.size() ? one.size() < other.size() : one < other;
  });
}

// Returns the definition of this name in the folder: the exact name, else the highest release of it.
std::optional<fs::path> FindIn(const fs::path& folder, const std::string& name) {
  std::optional<fs::path> highest;
  std::vector<std::string> numbers;
  const auto may_be = [&](const fs::path& file) {
    const std::string stem = file.stem().string();
    return (stem == name || !ReleaseAfter(name, stem).empty()) && MayBeTrainer(file);
  };
  for (const fs::path& file : NamedFiles({folder}, may_be)) {
    const std::string stem = file.stem().string();
    if (stem == name) return file;
    const auto release = ReleaseNumbers(ReleaseAfter(name, stem));
    if (release && (!highest || IsLower(numbers, *release))) {
      highest = file;
      numbers = *release;
    }
  }
  return highest;
}

}  // namespace

std::vector<fs::path> TrainerFolders(std::vector<fs::path> own) {
  own.emplace_back("trainers");
  return FoldersOf("trainers", std::move(own));
}

std::vector<fs::path> FindTrainers(const std::vector<fs::path>& folders) { return NamedFiles(folders, MayBeTrainer); }

fs::path FindTrainer(const std::string& name, const std::vector<fs::path>& folders) {
  for (const fs::path& folder : folders) {
    if (auto found = FindIn(folder, name)) return *std::move(found);
  }
  const std::string plain = name.substr(0, name.find('@'));
  std::vector<std::string> releases;
  for (const fs::path& file : FindTrainers(folders)) {
    const std::string stem = file.stem().string();
    if (stem == plain || !ReleaseAfter(plain, stem).empty()) releases.push_back(stem);
  }
  if (releases.empty()) return FindNamedFile("trainer", name, folders, MayBeTrainer);
  throw Error(ErrorKind::kUsage,
              name == plain
                  ? fmt::format("{} has no numbered release: name one of {}", name, Join(releases, ", "))
                  : fmt::format("there is no trainer '{}'; of {} there are {}", name, plain, Join(releases, ", ")),
              "a release is a file of its own, such as trainers/" + plain + "@1.0.yaml");
}

}  // namespace ridgeline::trainers
