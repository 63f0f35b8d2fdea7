#include "sweep/published.h"

#include <string>

#include <fmt/format.h>

#include "base/text.h"
#include "sweep/entries.h"
#include "yaml/common_mistakes.h"
#include "yaml/units.h"

namespace ridgeline::sweep {
namespace {

constexpr double kMostTokensPerS = 1e12;
constexpr size_t kLongestSource = 300;

class PublishedReader {
 public:
  PublishedReader(Sweep& sweep, ValueCount& count, std::vector<yaml::Fault>& faults)
      : sweep_(sweep), count_(count), faults_(faults) {}

  void Read(const yaml::YamlNode& node) {
    for (const yaml::YamlNode* map : yaml::Mappings(node, "published", /*lone=*/false, faults_, "figures"))
      ReadOne(*map);
  }

 private:
  void Add(const yaml::Place& place, std::string message) { faults_.push_back({place, std::move(message)}); }

  void ReadOne(const yaml::YamlNode& map) {
    static const yaml::Names kKnown = {"source", "when", "cold_tokens_per_s", "steady_tokens_per_s", "peak_memory"};
    const size_t faults_before = faults_.size();
    Published published;
    bool sourced = false;
    for (const auto& [key, value] : yaml::Entries(map, "key of published figures", kKnown, faults_)) {
      if (key == "source") {
        sourced = true;
        ReadSource(*value, published.source);
      } else if (key == "when") {
        published.when = ReadConditions(*value, "when", sweep_.trainers, count_, faults_);
      } else if (key == "peak_memory") {
        ReadPeak(*value, published.peak_bytes);
      } else {
        ReadRate(*value, key, key == "cold_tokens_per_s" ? published.cold_tokens_per_s : published.steady_tokens_per_s);
      }
    }
    if (!sourced) Add(map.place, "published figures need a source: who published them, and where");
    if (published.when.empty()) Add(map.place, "published figures need `when`: the points that they belong to");
    if (published.cold_tokens_per_s == 0 && published.steady_tokens_per_s == 0 && published.peak_bytes == 0) {
      Add(map.place, "published figures need cold_tokens_per_s, steady_tokens_per_s or peak_memory");
    }
    if (faults_.size() == faults_before) sweep_.published.push_back(std::move(published));
  }

  void ReadSource(const yaml::YamlNode& node, std::string& to) {
    if (node.scalar.is_string()) to = node.scalar.get<std::string>();
    if (to.empty() || to.size() > kLongestSource || PrintableLine(to) != to) {
      Add(node.place, fmt::format("source is one line of 1 to {} characters, without controls", kLongestSource));
    }
  }

  void ReadPeak(const yaml::YamlNode& node, int64_t& to) {
    const auto bytes = yaml::ReadBytes(node);
    if (!bytes)
      Add(node.place, "peak_memory is a size such as 15.5GB, not " + yaml::Describe(node) + yaml::MostBytesNote(node));
    to = bytes.value_or(0);
  }

  // Reads a rate of all ranks together.
  void ReadRate(const yaml::YamlNode& node, const std::string& key, double& to) {
    if (node.scalar.is_number()) to = node.scalar.get<double>();
    if (!(to > 0) || to > kMostTokensPerS) {
      Add(node.place,
          fmt::format("{} is a number of tokens a second, of all ranks, not {}", key, yaml::Describe(node)));
    }
  }

  Sweep& sweep_;
  ValueCount& count_;
  std::vector<yaml::Fault>& faults_;
};

}  // namespace

void ReadPublished(const yaml::YamlNode& node, Sweep& sweep, ValueCount& count, std::vector<yaml::Fault>& faults) {
  PublishedReader(sweep, count, faults).Read(node);
}

}  // namespace ridgeline::sweep
