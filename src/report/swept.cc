#include "report/swept.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "report/facts.h"
#include "run/fields.h"
#include "run/spec.h"
#include "store/store.h"
#include "store/views.h"

namespace ridgeline::report {
namespace {

constexpr std::string_view kSetup = "setup.";  // precedes the columns of setups

using CellsByColumn = std::map<std::string, Cell>;

// The index of the column of this name in a table; none if there is none.
std::optional<size_t> PlaceOf(const Table& table, std::string_view name) {
  const auto it = std::find(table.columns.begin(), table.columns.end(), name);
  return it == table.columns.end() ? std::nullopt : std::optional(static_cast<size_t>(it - table.columns.begin()));
}

Cell CellOf(const Json& value) {
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number()) return value.get<double>();
  return value.is_string() ? value.get<std::string>() : DumpJson(value);
}

// For each of these points, by its id: the columns of its fields.
std::map<std::string, CellsByColumn> FieldsOf(store::Store& store, const std::set<std::string>& ids) {
  std::string sql = "SELECT p.id, p.spec ->> '$.own'";
  std::vector<std::string> names;
  for (const Field& field : Fields()) {
    sql += fmt::format(", {}", store::FieldSql(field));
    names.emplace_back(field.name);
  }
  const Table points = store.Query(sql + " FROM points AS p WHERE p.id IN (SELECT value FROM json_each(:ids))",
                                   {{"ids", DumpJson(ids)}});
  std::map<std::string, CellsByColumn> fields;
  for (const auto& row : points.rows) {
    CellsByColumn& of = fields[CellText(row[0])];
    for (size_t i = 0; i < names.size(); ++i) of[names[i]] = row[i + 2];
    const std::string own = CellText(row[1]);
    if (own.empty()) continue;
    const Json values = ParseJson(own, "a trainer's own fields in the store");
    for (const auto& [name, value] : values.items()) of[(IsSettingName(name) ? "" : "own.") + name] = CellOf(value);
  }
  return fields;
}

// The columns of setups. Few differ, so each is read and kept once.
struct Setups {
  std::map<std::string, CellsByColumn> read;   // by the text in the store
  std::map<int64_t, const CellsByColumn*> of;  // by a result's number; points into `read`
};

// The setups of these results.
Setups SetupsOf(store::Store& store, const std::set<int64_t>& numbers) {
  const Table results = store.Query(
      "SELECT number, setup FROM results WHERE number IN (SELECT value FROM "
      "json_each(:numbers))",
      {{"numbers", DumpJson(numbers)}});
  Setups setups;
  for (const auto& row : results.rows) {
    const auto [it, is_new] = setups.read.try_emplace(CellText(row[1]));
    if (is_new) {
      ShownFacts facts;
      AddFacts(ParseJson(it->first, "a setup in the store"), "", facts);
      // Removed, because reports already show the trainer, and the others belong to figures that were not measured
      // here.
      for (const char* told : {"trainer", "predicted_on", "published"}) facts.erase(told);
      for (auto& [name, value] : facts) it->second[std::string(kSetup) + name] = std::move(value);
    }
    setups.of.emplace(std::get<int64_t>(row[0]), &it->second);
  }
  return setups;
}

}  // namespace

void AddWhatDiffers(Report& report, store::Store& store, Table& table) {
  const std::optional<size_t> id_place = PlaceOf(table, "point_id");
  const std::optional<size_t> result_place = PlaceOf(table, "result");
  std::set<std::string> ids;
  std::set<int64_t> numbers;
  const auto id_of = [&](const std::vector<Cell>& row) { return id_place ? CellText(row[*id_place]) : std::string(); };
  const auto number_of = [&](const std::vector<Cell>& row) {
    const auto* number = result_place ? std::get_if<int64_t>(&row[*result_place]) : nullptr;
    return number == nullptr ? int64_t{0} : *number;
  };
  for (const auto& row : table.rows) {
    if (const std::string id = id_of(row); !id.empty()) ids.insert(id);
    if (const int64_t number = number_of(row); number > 0) numbers.insert(number);
  }
  if (ids.empty() && numbers.empty()) return;
  const std::map<std::string, CellsByColumn> fields = FieldsOf(store, ids);
  const Setups setups = SetupsOf(store, numbers);
  // The fields and the setup of each row; null if the store has none. A point without a result has no setup yet.
  std::vector<const CellsByColumn*> fields_of;
  std::vector<const CellsByColumn*> setup_of;
  for (const auto& row : table.rows) {
    const auto of_point = fields.find(id_of(row));
    fields_of.push_back(of_point == fields.end() ? nullptr : &of_point->second);
    const auto of_result = setups.of.find(number_of(row));
    setup_of.push_back(of_result == setups.of.end() ? nullptr : of_result->second);
  }
  static const Cell kNone;
  const auto cell_of = [&](const CellsByColumn* of, const std::string& name) -> const Cell& {
    const auto cell = of == nullptr ? CellsByColumn::const_iterator() : of->find(name);
    return of == nullptr || cell == of->end() ? kNone : cell->second;
  };
  std::vector<std::string> names;
  for (const Field& field : Fields()) names.emplace_back(field.name);
  std::set<std::string> others;
  for (const auto& [id, of] : fields) {
    for (const auto& [name, cell] : of) {
      if (name.starts_with("own.") || IsSettingName(name)) others.insert(name);
    }
  }
  for (const auto& [text, of] : setups.read) {
    for (const auto& [name, cell] : of) {
      // A setting that is an axis has its column already.
      if (!others.contains(name.substr(kSetup.size()))) others.insert(name);
    }
  }
  for (const std::string& name : others) {
    if (names.size() < Fields().size() + kMostSweptColumns) names.push_back(name);
  }
  const auto has = [&](const std::string& name) {
    return std::any_of(report.columns.begin(), report.columns.end(),
                       [&](const ReportColumn& c) { return c.name == name; });
  };
  // What differs among the points, and among the setups, of these rows: all that were read belong to some row.
  const auto differs = [&](const auto& all, const std::string& name) {
    return std::any_of(all.begin(), all.end(), [&](const auto& each) {
      return cell_of(&each.second, name) != cell_of(&all.begin()->second, name);
    });
  };
  for (const std::string& name : names) {
    const bool is_of_setup = name.starts_with(kSetup);
    if (has(name) || !(is_of_setup ? differs(setups.read, name) : differs(fields, name))) continue;
    if (!PlaceOf(table, name)) {
      const std::vector<const CellsByColumn*>& of = is_of_setup ? setup_of : fields_of;
      const size_t place = AddColumns(table, {name});
      for (size_t row = 0; row < table.rows.size(); ++row) table.rows[row][place] = cell_of(of[row], name);
    }
    ReportColumn column;
    column.name = column.label = name;
    column.hide = ReportColumn::Hide::kInTables;
    const Field* field = FindField(name);
    column.help = field == nullptr ? "" : std::string(field->help);
    const auto before = std::find_if(report.columns.begin(), report.columns.end(),
                                     [](const ReportColumn& c) { return c.name == report_columns::kProvenance; });
    report.columns.insert(before, std::move(column));
  }
}

}  // namespace ridgeline::report
