#include "sweep/price.h"

#include <optional>
#include <span>
#include <string>

#include <fmt/format.h>

#include "base/text.h"
#include "ridgeline/amount.h"
#include "yaml/common_mistakes.h"
#include "yaml/date.h"
#include "yaml/entries.h"

namespace ridgeline::sweep {
namespace {

constexpr Unit kPrices[] = {{"USD/h", 1}};
constexpr Unit kDollars[] = {{"USD", 1}};
constexpr Unit kPowers[] = {{"W", 1}, {"kW", 1e3}};
constexpr double kMostDollars = 1e6;  // for a node and hour
constexpr double kMostCost = 1e9;     // dollars, for a sweep
constexpr double kMostWatts = 1e6;    // for a node
constexpr size_t kLongestDate = 40;

class PriceReader {
 public:
  PriceReader(SweepPrice& price, std::vector<yaml::Fault>& faults) : price_(price), faults_(faults) {}

  void Read(const yaml::YamlNode& node) {
    static const yaml::Names kKnown = {"device", "node", "date", "power", "max_cost"};
    if (node.kind != yaml::YamlNode::Kind::kMap) {
      return Add(
          node.place,
          yaml::NotAMapping("price is a mapping such as {device: p5} or {node: 31.50 USD/h, date: 2026-03}", node));
    }
    for (const auto& [key, value] : yaml::Entries(node, "key of price", kKnown, faults_)) {
      if (key == "device") ReadDevice(*value);
      if (key == "node") ReadAmount(*value, "node", kPrices, "31.50 USD/h", kMostDollars, price_.node_usd_per_hour);
      if (key == "power") ReadAmount(*value, "power", kPowers, "5600 W", kMostWatts, price_.node_watts);
      if (key == "date") ReadDate(*value);
      if (key == "max_cost") {
        ReadAmount(*value, "max_cost", kDollars, "500 USD", kMostCost, price_.max_usd);
        price_.max_place = value->place;
      }
    }
    const auto said = [&](const char* key) {
      for (const yaml::YamlEntry& entry : node.entries) {
        if (entry.key.scalar == key) return true;
      }
      return false;
    };
    if (said("node") && !said("date")) Add(node.place, "price has a node's price and no date: when that was asked");
    if (said("max_cost") && !said("node")) Add(node.place, "price has max_cost and no price of a node: what jobs cost");
    if (said("date") && !said("node")) Add(node.place, "price has a date and no price of a node that it is of");
  }

 private:
  void Add(const yaml::Place& place, std::string message) { faults_.push_back({place, std::move(message)}); }

  // Returns one line of text. For anything else returns nothing and adds a fault.
  std::optional<std::string> Line(const yaml::YamlNode& node, const char* key, const char* example, size_t longest) {
    if (node.scalar.is_string()) {
      auto text = node.scalar.get<std::string>();
      if (!text.empty() && text.size() <= longest && PrintableLine(text) == text) return text;
    }
    Add(node.place, fmt::format("{} of price is text such as {}, not {}", key, example, yaml::Describe(node)));
    return std::nullopt;
  }

  void ReadDevice(const yaml::YamlNode& node) {
    price_.device_place = node.place;
    price_.device = Line(node, "device", "p5 (`ridgeline devices` lists them)", 100).value_or("");
  }

  // YAML reads 2026 alone as a number.
  void ReadDate(const yaml::YamlNode& node) {
    if (node.scalar.is_number_integer()) {
      price_.date = node.scalar.dump();
    } else {
      price_.date = Line(node, "date", "2026-03", kLongestDate).value_or("");
    }
    if (!price_.date.empty() && !yaml::IsDate(price_.date))
      Add(node.place, "date of price: " + yaml::NoDate(price_.date));
  }

  void ReadAmount(const yaml::YamlNode& node, const char* key, std::span<const Unit> units, const char* example,
                  double most, double& to) {
    std::string text;
    if (node.scalar.is_string()) text = node.scalar.get<std::string>();
    if (node.scalar.is_number()) text = node.scalar.dump();
    if (Trim(text).starts_with('-')) return Add(node.place, fmt::format("{} of price must not be negative", key));
    const std::optional<double> amount = ParseAmount(text, units);
    if (!amount || *amount <= 0 || *amount > most) {
      return Add(node.place,
                 fmt::format("{} of price is an amount such as {}, more than 0 and at most {:.0f} {}, not {}", key,
                             example, most, units.front().name, yaml::Describe(node)));
    }
    to = *amount;
  }

  SweepPrice& price_;
  std::vector<yaml::Fault>& faults_;
};

}  // namespace

void ReadPrice(const yaml::YamlNode& node, Sweep& sweep, std::vector<yaml::Fault>& faults) {
  PriceReader(sweep.price, faults).Read(node);
}

}  // namespace ridgeline::sweep
