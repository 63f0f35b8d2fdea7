#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "run/spec.h"
#include "sweep/expand.h"
#include "sweep/sweep.h"

namespace ridgeline::sweep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Sweep Searching(const std::string& search, const std::string& more = {}) {
  return ParseSweep(
      "name: s\nmatrix: {batch_size: [1, 2, 4], checkpointing: [none, full]}\n" + more + "search: " + search + "\n",
      "s.yaml");
}

std::string WrongSearch(const std::string& search, const std::string& more = {}) {
  try {
    Searching(search, more);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
    return e.message();
  }
  return "accepted";
}

std::vector<std::string> NamesOf(const std::vector<const Field*>& fields) {
  std::vector<std::string> names;
  for (const Field* field : fields) names.emplace_back(field->name);
  return names;
}

TEST(SweepSearch, IsRead) {
  const Sweep sweep = Searching("{maximize: cost, over: [checkpointing], budget: 12}");
  ASSERT_TRUE(sweep.search);
  EXPECT_EQ(sweep.search->maximize, SweepSearch::Objective::kCost);
  EXPECT_THAT(NamesOf(sweep.search->over), ElementsAre("checkpointing"));
  EXPECT_EQ(sweep.search->budget, 12);
  EXPECT_EQ(sweep.search->place.line, 3);
}

TEST(SweepSearch, UsesEveryAxisIfNoneIsNamed) {
  EXPECT_THAT(NamesOf(Searching("{maximize: fit, budget: 1}").search->over),
              ElementsAre("batch_size", "checkpointing"));
}

TEST(SweepSearch, SearchesFieldsThatMoveTogether) {
  const Sweep sweep = Searching("{maximize: fit, over: seq_length, budget: 1}",
                                "zip: {seq_length: [32, 64], grad_accumulation: [2, 1]}\n");
  EXPECT_THAT(NamesOf(sweep.search->over), ElementsAre("seq_length", "grad_accumulation"));
}

TEST(SweepSearch, EverySlipIsSaidWithItsPlace) {
  EXPECT_EQ(WrongSearch("{maximize: fit, over: [batch_size]}"),
            "s.yaml:3:9: search needs a budget: the most runs, such as budget: 12");
  EXPECT_EQ(WrongSearch("{budget: 3}"), "s.yaml:3:9: search needs maximize: tokens_per_s, cost or fit");
  EXPECT_THAT(WrongSearch("{maximize: token_per_s, budget: 3}"),
              HasSubstr("s.yaml:3:20: search maximizes tokens_per_s, cost or fit, not \"token_per_s\", did you mean "
                        "'tokens_per_s'?"));
  EXPECT_THAT(WrongSearch("{maximize: fit, over: [batch_sise], budget: 3}"),
              HasSubstr("s.yaml:3:32: over names axes of the sweep, but \"batch_sise\" is not a field, did you mean "
                        "'batch_size'?"));
  EXPECT_EQ(
      WrongSearch("{maximize: fit, over: [ranks], budget: 3}"),
      "s.yaml:3:32: ranks is not an axis of this sweep, whose axes are batch_size, checkpointing: give it values in "
      "matrix or zip");
  EXPECT_THAT(WrongSearch("{maximize: fit, over: [], budget: 3}"), HasSubstr("over is a list of axes"));
  EXPECT_THAT(WrongSearch("{maximize: fit, over: [batch_size, batch_size], budget: 3}"), HasSubstr("twice"));
  for (const char* budget : {"0", "-1", "501", "many", "1.5"}) {
    EXPECT_THAT(WrongSearch(std::string("{maximize: fit, budget: ") + budget + "}"),
                HasSubstr("budget must be an integer between 1 and 500"))
        << budget;
  }
  EXPECT_THAT(WrongSearch("{maximize: fit, budget: 1, budgets: 2}"), HasSubstr("did you mean 'budget'?"));
  EXPECT_THAT(WrongSearch("12"), HasSubstr("search is a mapping of maximize, over and budget"));
  EXPECT_THROW(ParseSweep("name: s\nsearch: {maximize: fit, budget: 1}\n", "s.yaml"), Error) << "no axis";
}

// Values for `max` in place of the largest batch that fits: two, of which the first is 1024 divided by the sequence
// length.
class TwoBatches final : public LargestBatch {
 public:
  std::vector<int64_t> Of(const Sweep&, const Point& point, const yaml::Place& place) const override {
    EXPECT_EQ(point.spec.batch_size, 1);
    EXPECT_GT(place.line, 1);
    return {1024 / point.spec.seq_length, 512 / point.spec.seq_length};
  }
};

TEST(SweepSearch, MaxIsTheBatchSizesThatStandForIt) {
  Sweep sweep = ParseSweep(
      "name: s\ndefaults: {model: llama-5m}\nmatrix: {seq_length: [64, 128], batch_size: [4, max]}\n", "s.yaml");
  EXPECT_TRUE(HasLargestBatch(sweep));
  EXPECT_EQ(Expand(sweep).at(1).spec.batch_size, 1) << "nobody says what it stands for";
  sweep.largest = std::make_shared<TwoBatches>();
  std::vector<int64_t> sizes;
  Expansion expansion;
  for (const Point& point : Expand(sweep, &expansion)) {
    sizes.push_back(point.spec.batch_size);
    EXPECT_EQ(point.id, PointId(point.spec)) << "it is the point with this batch size, and no other";
  }
  EXPECT_THAT(sizes, ElementsAre(4, 16, 8, 4, 8));
  EXPECT_EQ(expansion.duplicates, 1) << "4 is the second of those that stand for the last one";
}

TEST(SweepSearch, MaxMayBeADefault) {
  Sweep sweep =
      ParseSweep("name: s\ndefaults: {model: llama-5m, batch_size: max}\nmatrix: {seq_length: [64, 128]}\n", "s.yaml");
  EXPECT_TRUE(HasLargestBatch(sweep));
  EXPECT_THAT(NamesOf(VaryingFields(sweep)), ElementsAre("seq_length", "batch_size"));
  sweep.largest = std::make_shared<TwoBatches>();
  EXPECT_EQ(Expand(sweep).size(), 4U);
}

TEST(SweepSearch, NothingIsComparedWithMax) {
  const auto wrong = [](const std::string& text) -> std::string {
    try {
      ParseSweep("name: s\n" + text, "s.yaml");
    } catch (const Error& e) {
      return e.message();
    }
    return "accepted";
  };
  EXPECT_THAT(wrong("matrix: {batch_size: [1, max]}\nexclude: [{batch_size: \">4\"}]\n"),
              HasSubstr("s.yaml:3:24: the sweep has batch_size: max, which stands for what fits"));
  EXPECT_THAT(wrong("matrix: {batch_size: [1, 2]}\nexclude: [{batch_size: max}]\n"),
              HasSubstr("s.yaml:3:24: batch_size: max stands for what fits, and nothing can be compared with it"));
  EXPECT_THAT(wrong("matrix: {seq_length: [max]}\n"), HasSubstr("seq_length"));
}

}  // namespace
}  // namespace ridgeline::sweep
