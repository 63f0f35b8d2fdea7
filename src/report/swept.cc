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
#include "store/store.h"
#include "store/views.h"

namespace ridgeline {
namespace {

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
std::map<std::string, CellsByColumn> FieldsOf(Store& store, const std::set<std::string>& ids) {
  std::string sql = "SELECT p.id, p.spec ->> '$.own'";
  std::vector<std::string> names;
  for (const Field& field : Fields()) {
    sql += fmt::format(", {}", FieldSql(field));
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
    for (const auto& [name, value] : values.items()) of["own." + name] = CellOf(value);
  }
  return fields;
}

// For each of these results, by its number: the columns of its setup.
std::map<int64_t, CellsByColumn> SetupsOf(Store& store, const std::set<int64_t>& numbers) {
  const Table results = store.Query(
      "SELECT number, setup FROM results WHERE number IN (SELECT value FROM "
      "json_each(:numbers))",
      {{"numbers", DumpJson(numbers)}});
  std::map<std::string, CellsByColumn> read;  // few setups differ, so each is read once
  std::map<int64_t, CellsByColumn> setups;
  for (const auto& row : results.rows) {
    const auto [it, is_new] = read.try_emplace(CellText(row[1]));
    if (is_new) {
      Facts facts;
      AddFacts(ParseJson(it->first, "a setup in the store"), "", facts);
      // Removed, because reports already show the trainer, and the others belong to figures that were not measured
      // here.
      for (const char* told : {"trainer", "predicted_on", "published"}) facts.erase(told);
      for (auto& [name, value] : facts) it->second["setup." + name] = std::move(value);
    }
    setups.emplace(std::get<int64_t>(row[0]), it->second);
  }
  return setups;
}

}  // namespace

void AddWhatDiffers(Report& report, Store& store, Table& table) {
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
  const std::map<int64_t, CellsByColumn> setups = SetupsOf(store, numbers);
  static const Cell kNone;
  const auto cell_of = [&](const std::vector<Cell>& row, const std::string& name) -> const Cell& {
    const CellsByColumn* of = nullptr;
    if (name.starts_with("setup.")) {
      const auto it = setups.find(number_of(row));
      of = it == setups.end() ? nullptr : &it->second;
    } else {
      const auto it = fields.find(id_of(row));
      of = it == fields.end() ? nullptr : &it->second;
    }
    const auto cell = of == nullptr ? CellsByColumn::const_iterator() : of->find(name);
    return of == nullptr || cell == of->end() ? kNone : cell->second;
  };
  std::vector<std::string> names;
  for (const Field& field : Fields()) names.emplace_back(field.name);
  std::set<std::string> others;
  for (const auto& [id, of] : fields) {
    for (const auto& [name, cell] : of) {
      if (name.starts_with("own.")) others.insert(name);
    }
  }
  for (const auto& [number, of] : setups) {
    for (const auto& [name, cell] : of) others.insert(name);
  }
  for (const std::string& name : others) {
    if (names.size() < Fields().size() + kMostSweptColumns) names.push_back(name);
  }
  const auto has = [&](const std::string& name) {
    return std::any_of(report.columns.begin(), report.columns.end(),
                       [&](const ReportColumn& c) { return c.name == name; });
  };
  for (const std::string& name : names) {
    const std::vector<Cell>* first = nullptr;
    const bool differs = std::any_of(table.rows.begin(), table.rows.end(), [&](const std::vector<Cell>& row) {
      // A point without a result has no setup yet.
      if (name.starts_with("setup.") ? number_of(row) == 0 : id_of(row).empty()) return false;
      if (first == nullptr) first = &row;
      return cell_of(row, name) != cell_of(*first, name);
    });
    if (!differs || has(name)) continue;
    if (!PlaceOf(table, name)) {
      std::vector<Cell> cells;
      for (const auto& row : table.rows) cells.push_back(cell_of(row, name));
      table.columns.push_back(name);
      for (size_t row = 0; row < table.rows.size(); ++row) table.rows[row].push_back(std::move(cells[row]));
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

}  // namespace ridgeline
