#include "engine/train/data.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/base/temp_dir.h"
#include "tests/engine/train/specs.h"

namespace ridgeline::engine {
namespace {

struct Tokens {
  std::vector<int32_t> ids;
  std::vector<int32_t> targets;
};

Tokens Read(const RunSpec& spec, int64_t rank, int64_t step) {
  Tokens tokens;
  tokens.ids.resize(static_cast<size_t>(spec.grad_accumulation * spec.batch_size * spec.seq_length));
  tokens.targets.resize(tokens.ids.size());
  MakeTokenSource(spec, rank)->Fill(step, tokens.ids, tokens.targets);
  return tokens;
}

// A micro-step of one process with the whole batch has the ranks' rows, one rank after another.
TEST(Data, RanksTogetherReadTheRowsOfOne) {
  const TempDir dir;
  std::ofstream text(dir / "text");
  for (int i = 0; i < 5000; ++i) text << static_cast<char>(i * 131 % 251);
  text.close();
  for (const std::string& data : {std::string("synthetic"), (dir / "text").string()}) {
    Json values = TinyModel("llama");
    values.update({{"vocab", 300}, {"data", data}, {"batch_size", 6}, {"grad_accumulation", 3}});
    const Tokens whole = Read(SpecFrom(values), 0, 5);
    values.update({{"batch_size", 2}, {"ranks", 3}});
    const RunSpec spec = SpecFrom(values);
    const auto row = static_cast<size_t>(spec.seq_length);
    for (int64_t rank = 0; rank < 3; ++rank) {
      const Tokens part = Read(spec, rank, 5);
      for (size_t micro_step = 0; micro_step < 3; ++micro_step) {
        for (size_t i = 0; i < 2 * row; ++i) {
          const size_t in_whole = (micro_step * 6 + static_cast<size_t>(rank) * 2) * row + i;
          ASSERT_EQ(part.ids[micro_step * 2 * row + i], whole.ids[in_whole]) << data << " rank " << rank;
          ASSERT_EQ(part.targets[micro_step * 2 * row + i], whole.targets[in_whole]);
        }
      }
    }
    EXPECT_NE(Read(spec, 0, 5).ids, Read(spec, 1, 5).ids);
    EXPECT_NE(Read(spec, 0, 5).ids, Read(spec, 0, 6).ids);
  }
}

}  // namespace
}  // namespace ridgeline::engine
