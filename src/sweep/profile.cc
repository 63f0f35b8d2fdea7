#include "sweep/profile.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/folders.h"
#include "base/text.h"
#include "sweep/launch.h"
#include "yaml/yaml.h"

namespace ridgeline::sweep {
namespace {
namespace fs = std::filesystem;

constexpr const char* kProfile = "profile";

// The faults of several files, a line each, and what to do about the first of them.
struct Faults {
  std::vector<std::string> lines;
  std::string hint;

  void Add(const fs::path& file, const yaml::Fault& fault, const std::string& what_to_do) {
    lines.push_back(yaml::FaultText(file, fault));
    if (hint.empty()) hint = what_to_do;
  }
};

Json ReadProfile(const fs::path& file, Faults& faults) {
  std::vector<yaml::Fault> found;
  Json settings;
  try {
    const yaml::YamlNode node = yaml::ParseYaml(ReadFile(file));
    settings = yaml::ToJsonValue(node, found);
    if (node.kind != yaml::YamlNode::Kind::kMap || settings.contains(kProfile)) {
      found.push_back({node.place, fmt::format("a profile is {}",
                                               node.kind != yaml::YamlNode::Kind::kMap
                                                   ? "a mapping of a launcher's settings"
                                                   : "not based on another profile: list both where they are used")});
    }
  } catch (const yaml::Fault& fault) {
    found.push_back(fault);
  }
  for (const yaml::Fault& fault : found) faults.Add(file, fault, "docs/kubernetes.md shows profiles");
  return found.empty() ? settings : Json::object();
}

class Profiles {
 public:
  Profiles(const Sweep& sweep, const std::optional<fs::path>& shipped)
      : file_(sweep.file), launcher_(sweep.launch.launcher) {
    if (shipped) folder_ = *shipped / launcher_;
  }

  // `config` is from `launch:` or a rule; `place` says where that is.
  void Use(const yaml::Place& place, Json& config) {
    const auto own = config.find(launcher_);
    if (own == config.end() || !own->is_object() || !own->contains(kProfile)) return;
    Json settings = Json::object();
    const Json names = own->at(kProfile);
    for (const Json& name : names.is_array() ? names : Json::array({names})) {
      if (name.is_string()) {
        settings.merge_patch(Named(place, name.get<std::string>()));
      } else {
        Refuse(place, fmt::format("profile is a name, or a list of names, not {}", DumpJson(name)));
      }
    }
    own->erase(kProfile);
    settings.merge_patch(*own);
    *own = std::move(settings);
  }

  // Throws one Error(kInvalidInput) with all faults, if there are any.
  void ThrowIfFaulty() const {
    if (!faults_.lines.empty()) throw Error(ErrorKind::kInvalidInput, Join(faults_.lines, "\n"), faults_.hint);
  }

 private:
  Json Refuse(const yaml::Place& place, const std::string& message, const std::string& hint = {}) {
    faults_.Add(file_, {place, fmt::format("launch: {}: {}", launcher_, message)}, hint);
    return Json::object();
  }

  Json Named(const yaml::Place& place, const std::string& name) {
    std::error_code ec;
    if (!IsPlainName(name)) {
      const fs::path file = file_.parent_path() / name;
      if (fs::is_regular_file(file, ec)) return ReadProfile(file, faults_);
      return Refuse(place, fmt::format("there is no profile {}", PrintableLine(file.string())),
                    "a path is taken from where the sweep's file is");
    }
    const fs::path file = folder_ / (name + ".yaml");
    if (!folder_.empty() && fs::is_regular_file(file, ec)) return ReadProfile(file, faults_);
    const std::vector<std::string> known = Shipped();
    return Refuse(place, fmt::format("there is no profile '{}'{}", name, DidYouMean(name, known)),
                  known.empty()
                      ? "none ship for this launcher; a path such as ./mine.yaml names one of your own"
                      : fmt::format("those that ship are {}; a path such as ./mine.yaml names one of your own",
                                    Join(known, ", ")));
  }

  std::vector<std::string> Shipped() const {
    std::vector<std::string> names;
    ForEachEntry(folder_, [&](const fs::directory_entry& entry) {
      if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
    });
    std::sort(names.begin(), names.end());
    return names;
  }

  const fs::path& file_;
  const std::string& launcher_;
  fs::path folder_;  // empty: no profiles are shipped
  Faults faults_;
};

}  // namespace

void UseProfiles(Sweep& sweep, const std::optional<fs::path>& shipped) {
  Profiles profiles(sweep, shipped);
  profiles.Use(sweep.launch.place, sweep.launch.config);
  for (LaunchRule& rule : sweep.rules) profiles.Use(rule.place, rule.set.config);
  profiles.ThrowIfFaulty();
}

}  // namespace ridgeline::sweep
