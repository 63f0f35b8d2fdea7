#include "serve/names.h"

#include <fmt/format.h>

#include "base/json.h"
#include "regress/point_names.h"
#include "run/parallelism.h"
#include "run/spec.h"

namespace ridgeline {

// Ids are hashes. So the first points of a sweep by id are a random sample, in which everything that varies shows.
std::map<std::string, std::string> NamesInSweep(Store& store, const std::string& sweep,
                                                const std::vector<std::string>& ids) {
  std::map<std::string, std::string> names;
  if (ids.empty()) return names;
  const Table rows = store.Query(
      "SELECT id, spec FROM points WHERE id IN (SELECT value FROM json_each(:ids)) OR id IN "
      "(SELECT point_id FROM sweep_points WHERE sweep = :sweep ORDER BY point_id LIMIT 200)",
      {{"ids", DumpJson(ids)}, {"sweep", sweep}});
  std::vector<std::string> specs;
  for (const auto& row : rows.rows) specs.push_back(CellText(row[1]));
  const std::vector<std::string> all = PointNames(specs);
  for (size_t i = 0; i < all.size(); ++i) names[CellText(rows.rows[i][0])] = all[i];
  return names;
}

std::string NameOfPoint(const std::string& text) {
  const RunSpec spec = DecodeSpec(ParseJson(text, "a point in the store"), "a point in the store");
  std::string name = fmt::format("{}, {}, batch {}", spec.model, spec.precision, spec.batch_size);
  if (spec.grad_accumulation > 1) name += fmt::format(" \xC3\x97 {}", spec.grad_accumulation);
  name += fmt::format(", sequence {}", spec.seq_length);
  if (spec.checkpointing != "none") name += ", checkpointing " + spec.checkpointing;
  if (spec.ranks > 1) name += fmt::format(", {} ranks", spec.ranks);
  if (const std::string words = ParallelWords(spec); !words.empty()) name += ", " + words;
  if (spec.shard != "none") name += ", shard " + spec.shard;
  if (spec.gpu != "none") name += ", " + spec.gpu;
  if (spec.trainer != "ridgeline") name += ", " + spec.trainer;
  return name;
}

}  // namespace ridgeline
