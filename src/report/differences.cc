#include "report/differences.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "report/facts.h"
#include "report/page.h"
#include "store/store.h"

namespace ridgeline::report {
namespace {

struct Knowledge {
  std::map<int64_t, ShownFacts> facts;  // by the results' numbers
  std::set<std::string> of_setups;      // facts from a setup
};

Knowledge Known(store::Store& store, const std::vector<std::optional<int64_t>>& results) {
  Json numbers = Json::array();
  for (const auto& result : results) {
    if (result) numbers.push_back(*result);
  }
  const Table table = store.Query(
      "SELECT r.number, p.spec, r.setup, r.campaign, e.machine, e.version, r.device_name, "
      "e.environment ->> '$.definition' FROM results AS r "
      "JOIN points AS p ON p.id = r.point_id LEFT JOIN environments AS e ON e.id = r.environment_id "
      "WHERE r.number IN (SELECT value FROM json_each(:numbers))",
      {{"numbers", DumpJson(numbers)}});
  Knowledge known;
  for (const auto& row : table.rows) {
    ShownFacts& facts = known.facts[std::get<int64_t>(row[0])];
    facts = FactsOfPoint(CellText(row[1]));
    const auto defined = facts.find("trainer");
    ShownFacts setup;
    AddFacts(ParseJson(CellText(row[2]), "a setup in the store"), "", setup);
    if (defined != facts.end()) setup["trainer"] = defined->second;  // its definition's hash means nothing to people
    // A predicted result says so itself, and on which device.
    const bool was_run = setup.erase("predicted_on") == 0;
    setup.erase("published");
    for (auto& [key, value] : setup) {
      known.of_setups.insert(key);
      facts.insert_or_assign(key, std::move(value));
    }
    if (was_run) facts["campaign"] = CellText(row[3]);
    if (const std::string machine = CellText(row[4]); !machine.empty()) facts["machine"] = machine;
    if (const std::string version = CellText(row[5]); !version.empty()) facts["version"] = version;
    // A name without a release may have meant a different one at another time.
    const std::string definition = CellText(row[7]);
    if (!definition.empty() && !definition.starts_with(facts["trainer"] + " ")) facts["definition"] = definition;
    if (const std::string device = CellText(row[6]); !device.empty()) facts["device_name"] = device;
  }
  return known;
}

// A machine is a list of words. Omits those that all have.
std::string WithoutCommonParts(const std::string& text, const std::set<std::string>& all) {
  const auto parts = [](std::string_view rest) {
    std::vector<std::string> list;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find("; "), rest.size());
      list.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 2, rest.size()));
    }
    return list;
  };
  std::vector<std::string> own;
  for (const std::string& part : parts(text)) {
    const bool common = std::all_of(all.begin(), all.end(), [&](const std::string& other) {
      const std::vector<std::string> others = parts(other);
      return std::find(others.begin(), others.end(), part) != others.end();
    });
    if (!common) own.push_back(part);
  }
  return Join(own, "; ");
}

// Some fields belong to a format and have their own value for each. They follow from the format.
bool FollowsFromPrecision(const std::string& key, const std::map<int64_t, ShownFacts>& known) {
  std::map<std::string, std::string> values;  // by precision
  return std::all_of(known.begin(), known.end(), [&](const auto& entry) {
    const ShownFacts& facts = entry.second;
    const auto value = facts.find(key);
    const auto precision = facts.find("precision");
    if (value == facts.end() || precision == facts.end()) return true;
    return values.emplace(precision->second, value->second).first->second == value->second;
  });
}

}  // namespace

std::vector<std::string> TellApart(store::Store& store, const std::vector<std::optional<int64_t>>& results,
                                   const std::set<std::string>& told) {
  const auto [known, of_setups] = Known(store, results);
  std::map<std::string, std::set<std::string>> values;
  std::map<std::string, size_t> counts;
  for (const auto& [result, facts] : known) {
    for (const auto& [key, value] : facts) {
      values[key].insert(value);
      ++counts[key];
    }
  }
  std::vector<std::string> words(results.size());
  for (const auto& [key, all] : values) {
    const bool everywhere = counts[key] == known.size();
    const bool of_setup = of_setups.contains(key);  // requesting something differs from not requesting it
    if (told.contains(key) || (all.size() == 1 && (everywhere || !of_setup))) continue;
    const bool of_origin = key == "machine" || key == "version" || key == "device_name";
    if (!everywhere && !of_setup && !of_origin && FollowsFromPrecision(key, known)) continue;
    for (size_t i = 0; i < results.size(); ++i) {
      const auto facts = results[i] ? known.find(*results[i]) : known.end();
      if (facts == known.end() || !facts->second.contains(key)) continue;
      const std::string& value = facts->second.at(key);
      words[i] += (words[i].empty() ? "" : ", ") + (key == "device_name" ? "device" : key) + " " +
                  (key == "machine" ? WithoutCommonParts(value, all) : value);
    }
  }
  return words;
}

void AddDifferences(const Report& report, store::Store& store, Table& table) {
  const auto column = [&](std::string_view name) {
    return static_cast<size_t>(std::find(table.columns.begin(), table.columns.end(), name) - table.columns.begin());
  };
  const size_t result = column("result");
  const size_t panel = column(report_columns::kPanel);
  if (result == table.columns.size() || panel == table.columns.size()) return;
  std::vector<std::vector<size_t>> panels;
  std::unordered_map<std::string, size_t> index;
  for (size_t row = 0; row < table.rows.size(); ++row) {
    const auto [it, is_new] = index.emplace(CellText(table.rows[row][panel]), panels.size());
    if (is_new) panels.emplace_back();
    if (it->second < kMaxPanels && panels[it->second].size() < kMaxTableRows) panels[it->second].push_back(row);
  }
  const size_t differs = AddColumns(table, {std::string(report_columns::kDiffers)});
  const std::set<std::string> told(report.tells.begin(), report.tells.end());
  for (const std::vector<size_t>& rows : panels) {
    std::vector<std::optional<int64_t>> results;
    for (const size_t row : rows) {
      const auto* number = std::get_if<int64_t>(&table.rows[row][result]);
      results.push_back(number == nullptr ? std::nullopt : std::optional(*number));
    }
    std::vector<std::string> words = TellApart(store, results, told);
    for (size_t i = 0; i < rows.size(); ++i) {
      if (!words[i].empty()) table.rows[rows[i]][differs] = std::move(words[i]);
    }
  }
}

}  // namespace ridgeline::report
