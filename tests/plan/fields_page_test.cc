// docs/fields.md, made from the table of fields. RIDGELINE_UPDATE_GOLDENS=1 writes it again.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/files.h"
#include "base/table.h"
#include "plan/show.h"

namespace ridgeline::plan {
namespace {

constexpr const char* kHead = R"(# Fields

Every field can be a default or an axis of a [sweep](sweeps.md). `model` sets the shape, from `layers` to `tied_head`. A
trainer's definition may add fields of its own ([trainers.md](trainers.md)). Those with a dot stand in a section:
`checkpoint.dir` is `checkpoint: {dir: …}`. `ridgeline plan --fields` prints this list, too.

)";

TEST(FieldsPage, IsWhatPlanFieldsPrints) {
  const auto file = std::filesystem::path(RIDGELINE_SOURCE_DIR) / "docs/fields.md";
  const std::string page = kHead + Format(FieldsTable(), "md");
  if (std::getenv("RIDGELINE_UPDATE_GOLDENS") != nullptr) WriteFileAtomic(file, page);
  EXPECT_EQ(page, ReadFile(file)) << "RIDGELINE_UPDATE_GOLDENS=1 writes what it is now";
}

}  // namespace
}  // namespace ridgeline::plan
