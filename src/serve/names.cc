#include "serve/names.h"

#include "base/json.h"
#include "regress/point_names.h"
#include "run/point_name.h"
#include "run/spec.h"

namespace ridgeline::serve {

// Ids are hashes. So the first points of a sweep by id are a random sample, in which everything that varies shows.
std::map<std::string, std::string> NamesInSweep(store::Store& store, const std::string& sweep,
                                                const std::vector<std::string>& ids) {
  std::map<std::string, std::string> names;
  if (ids.empty()) return names;
  const Table rows = store.Query(
      "SELECT id, spec FROM points WHERE id IN (SELECT value FROM json_each(:ids)) OR id IN "
      "(SELECT point_id FROM sweep_points WHERE sweep = :sweep ORDER BY point_id LIMIT 200)",
      {{"ids", DumpJson(ids)}, {"sweep", sweep}});
  std::vector<std::string> specs;
  for (const auto& row : rows.rows) specs.push_back(CellText(row[1]));
  const std::vector<std::string> all = regress::PointNames(specs);
  for (size_t i = 0; i < all.size(); ++i) names[CellText(rows.rows[i][0])] = all[i];
  return names;
}

std::string NameOfPoint(const std::string& text) {
  return PointName(DecodeSpec(ParseJson(text, "a point in the store"), "a point in the store"));
}

}  // namespace ridgeline::serve
