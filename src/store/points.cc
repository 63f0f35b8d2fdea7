#include "store/points.h"

#include <string>
#include <type_traits>

#include <fmt/format.h>

#include "run/fields.h"
#include "run/spec.h"

namespace ridgeline::store {
namespace {

std::string InsertPointSql() {
  std::string columns;
  std::string values;
  for (const Field& field : Fields()) {
    columns += fmt::format(", {}", field.name);
    values += ", ?";
  }
  return fmt::format("INSERT INTO points (id, spec{}) VALUES (?, ?{})", columns, values);
}

}  // namespace

PointWriter::PointWriter(Database& database)
    : known_(database.Prepare("SELECT 1 FROM points WHERE id = ?")), add_(database.Prepare(InsertPointSql())) {}

void PointWriter::Write(const Point& point) {
  known_.Bind(1, point.id);
  const bool is_known = known_.Step();
  known_.Reset();
  if (is_known) return;
  add_.Bind(1, point.id);
  add_.Bind(2, EncodePoint(point.spec));
  int index = 3;
  for (const Field& field : Fields()) {
    std::visit(
        [&](const auto& value) {
          if constexpr (std::is_same_v<std::decay_t<decltype(value)>, bool>) {
            add_.Bind(index, static_cast<int64_t>(value));
          } else {
            add_.Bind(index, value);
          }
        },
        ValueOf(point.spec, field));
    ++index;
  }
  add_.Run();
}

}  // namespace ridgeline::store
