#include "sweep/expand.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "run/names.h"
#include "run/spec.h"
#include "sweep/encoder.h"

namespace ridgeline::sweep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<Point> ExpandText(const std::string& text, Expansion* expansion = nullptr) {
  return Expand(ParseSweep("name: test\n" + text, "s.yaml"), expansion);
}

// Each point as the texts of `fields`, separated by spaces.
std::vector<std::string> Shown(const std::string& text, const std::vector<std::string>& fields) {
  std::vector<std::string> shown;
  for (const Point& point : ExpandText(text)) {
    std::vector<std::string> parts;
    parts.reserve(fields.size());
    for (const std::string& field : fields) parts.push_back(FieldText(point.spec, *FindField(field)));
    shown.push_back(Join(parts, " "));
  }
  return shown;
}

std::string RefusalOfExpansion(const std::string& text) {
  try {
    ExpandText(text);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
    return e.message();
  }
  return "accepted";
}

TEST(Expand, DefaultsAloneAreOnePoint) {
  const auto points = ExpandText("defaults: {model: llama-10m, seq_length: 128}");
  ASSERT_THAT(points, SizeIs(1));
  EXPECT_EQ(points[0].spec.model, "llama-10m");
  EXPECT_EQ(points[0].spec.seq_length, 128);
  EXPECT_EQ(points[0].id, PointId(points[0].spec));
}

TEST(Expand, ExpandsOnlyTheSelectedPoints) {
  Sweep sweep = ParseSweep("name: test\ndefaults: {model: llama-10m}\nmatrix: {seed: [1, 2, 3]}", "s.yaml");
  const std::vector<Point> all = Expand(sweep);
  ASSERT_THAT(all, SizeIs(3));
  sweep.only = {all[1].id, "another"};
  const std::vector<Point> some = Expand(sweep);
  ASSERT_THAT(some, SizeIs(1));
  EXPECT_EQ(some[0].id, all[1].id);
}

TEST(Expand, TheMatrixIsACrossProductTheLastAxisFastest) {
  EXPECT_THAT(Shown("defaults: {model: llama-10m}\n"
                    "matrix: {batch_size: [1, 8], checkpointing: [none, full]}",
                    {"batch_size", "checkpointing"}),
              ElementsAre("1 none", "1 full", "8 none", "8 full"));
}

TEST(Expand, ZipAxesMoveTogetherAndGroupsCross) {
  EXPECT_THAT(Shown("defaults: {model: llama-10m}\n"
                    "matrix: {precision: [fp32, bf16]}\n"
                    "zip:\n"
                    "  - {batch_size: [8, 4], seq_length: [128, 256]}\n"
                    "  - {seed: [1, 2], steps: [3, 4]}",
                    {"precision", "batch_size", "seq_length", "seed", "steps"}),
              ElementsAre("fp32 8 128 1 3", "fp32 8 128 2 4", "fp32 4 256 1 3", "fp32 4 256 2 4", "bf16 8 128 1 3",
                          "bf16 8 128 2 4", "bf16 4 256 1 3", "bf16 4 256 2 4"));
  EXPECT_THAT(Shown("defaults: {model: llama-10m}\nzip: {batch_size: 1..4*2, seq_length: [64, 32, 16]}",
                    {"batch_size", "seq_length"}),
              ElementsAre("1 64", "2 32", "4 16"));
}

TEST(Expand, AnyFieldCanBeAnAxis) {
  EXPECT_THAT(Shown("matrix: {model: [llama-10m, gpt-10m], learning_rate: [1e-4, 0.001]}",
                    {"model", "family", "learning_rate", "rope_theta"}),
              ElementsAre("llama-10m llama 0.0001 500000", "llama-10m llama 0.001 500000", "gpt-10m gpt 0.0001 0",
                          "gpt-10m gpt 0.001 0"));
  EXPECT_THAT(Shown("defaults: {hidden: 64, heads: 4, ffn: 128, vocab: 256, layers: 2, positions: 64, seq_length: 32}\n"
                    "matrix: {family: [gpt]}",
                    {"family", "model", "tied_head"}),
              ElementsAre("gpt gpt-2x64 true"));
}

TEST(Expand, AnAxisOverridesTheDefaultAndTheModel) {
  EXPECT_THAT(Shown("defaults: {model: llama-10m, batch_size: 3}\nmatrix: {batch_size: [5], layers: [8, 2]}",
                    {"batch_size", "layers", "model"}),
              ElementsAre("5 8 llama-10m", "5 2 llama-2x256"));
  EXPECT_THAT(
      Shown("defaults: {model: llama-10m}\nmeasure: {steps: 7, warmup_steps: 0, repeats: 2}\nmatrix: {steps: [9]}",
            {"steps", "warmup_steps", "repeats"}),
      ElementsAre("9 0 2"));
}

TEST(Expand, PointsAreCanonicalAndEachOnce) {
  Expansion expansion;
  const auto points = ExpandText(
      "defaults: {model: llama-10m}\n"
      "matrix: {checkpointing: [full, full/1, none], kv_heads: [2], batch_size: [1, 1.0, 0x1]}",
      &expansion);
  ASSERT_THAT(points, SizeIs(2));
  EXPECT_EQ(NameOf(points[0].spec.checkpointing), "full");
  EXPECT_EQ(NameOf(points[1].spec.checkpointing), "none");
  EXPECT_EQ(expansion.points, 2);
  EXPECT_EQ(expansion.duplicates, 7);
}

TEST(Expand, APresetAndItsShapeInOneSweepAreOnePoint) {
  EXPECT_THAT(
      ExpandText("matrix: {model: [llama-10m]}\n"
                 "include:\n"
                 "  - {model: llama-25m, layers: 8, hidden: 256, heads: 4, kv_heads: 2, ffn: 704, vocab: 16384}\n"),
      SizeIs(1));
}

TEST(Expand, ExcludeTakesScalarsListsAndComparisons) {
  const std::string grid =
      "defaults: {model: llama-10m}\nmatrix: {batch_size: [1, 2, 4, 8], precision: [bf16, fp32]}\n";
  const std::vector<std::string> fields = {"batch_size", "precision"};
  EXPECT_THAT(Shown(grid + "exclude: [{batch_size: 2}, {precision: fp32, batch_size: [4, 8]}]", fields),
              ElementsAre("1 bf16", "1 fp32", "4 bf16", "8 bf16"));
  EXPECT_THAT(Shown(grid + "exclude: [{batch_size: '>2'}]", fields),
              ElementsAre("1 bf16", "1 fp32", "2 bf16", "2 fp32"));
  EXPECT_THAT(Shown(grid + "exclude: [{batch_size: '>= 2'}]", fields), ElementsAre("1 bf16", "1 fp32"));
  EXPECT_THAT(Shown(grid + "exclude: [{batch_size: <8}]", fields), ElementsAre("8 bf16", "8 fp32"));
  EXPECT_THAT(Shown(grid + "exclude: [{batch_size: <=4}]", fields), ElementsAre("8 bf16", "8 fp32"));
  EXPECT_THAT(Shown(grid + "exclude: [{batch_size: '!=4'}, {precision: '!=fp32'}]", fields), ElementsAre("4 fp32"));
  EXPECT_THAT(Shown(grid + "exclude: [{batch_size: 2..8*2}]", fields), ElementsAre("1 bf16", "1 fp32"));
}

TEST(Expand, ExcludeSeesWhatIsNoAxisAsThePointWouldHaveIt) {
  EXPECT_THAT(Shown("matrix: {model: [llama-10m, llama-25m, gpt-25m], batch_size: [1, 8]}\n"
                    "exclude: [{hidden: '>256', family: llama, batch_size: 8}]",
                    {"model", "batch_size"}),
              ElementsAre("llama-10m 1", "llama-10m 8", "llama-25m 1", "gpt-25m 1", "gpt-25m 8"));
}

TEST(Expand, ExcludeIsBeforeTheCheckForImpossiblePoints) {
  EXPECT_THAT(Shown("matrix: {model: [llama-10m, gpt-10m], seq_length: [512, 2048]}\n"
                    "exclude: [{family: gpt, seq_length: '>1024'}]",
                    {"model", "seq_length"}),
              ElementsAre("llama-10m 512", "llama-10m 2048", "gpt-10m 512"));
}

TEST(Expand, ExcludeInZipGroups) {
  EXPECT_THAT(Shown("defaults: {model: llama-10m}\nzip: [{batch_size: [1, 2, 4], seq_length: [64, 32, 16]}]\n"
                    "exclude: [{batch_size: '>1', seq_length: '>16'}]",
                    {"batch_size", "seq_length"}),
              ElementsAre("1 64", "4 16"));
}

TEST(Expand, AnExcludeThatMatchesNothingIsAWarning) {
  Expansion expansion;
  ExpandText(
      "defaults: {model: llama-10m}\n"
      "matrix: {batch_size: [1, 8]}\n"
      "exclude:\n"
      "  - {batch_size: 16}\n"
      "  - {batch_size: 8}\n",
      &expansion);
  EXPECT_THAT(expansion.warnings, ElementsAre("s.yaml:5:5: this exclude matches nothing"));
  EXPECT_EQ(expansion.excluded, 1);
  ExpandText("defaults: {model: llama-10m}\nmatrix: {batch_size: [1]}\nexclude: [{batch_size: 1}]", &expansion);
  EXPECT_EQ(expansion.points, 0);
  EXPECT_THAT(expansion.warnings, ElementsAre(HasSubstr("there are no points")));
}

// The rules of GitHub Actions: an entry extends the combinations that it does not contradict; if there are none, it is
// a new one. Later entries may overwrite what earlier ones added, but never an axis. Points that include made are not
// extended.
TEST(Expand, IncludeExtendsOrAdds) {
  EXPECT_THAT(Shown("defaults: {model: llama-10m}\n"
                    "matrix: {batch_size: [1, 2], precision: [bf16, fp32]}\n"
                    "include:\n"
                    "  - {seed: 7}\n"                    // added to all
                    "  - {seed: 8, precision: fp32}\n"   // overwrites what was added, for fp32
                    "  - {batch_size: 2, steps: 9}\n"    // added to both with batch size 2
                    "  - {batch_size: 16}\n"             // no such combination: a new point
                    "  - {batch_size: 16, steps: 3}\n",  // another, not added to the one before
                    {"batch_size", "precision", "seed", "steps"}),
              ElementsAre("1 bf16 7 5", "1 fp32 8 5", "2 bf16 7 9", "2 fp32 8 9", "16 bf16 1234 5", "16 bf16 1234 3"));
}

TEST(Expand, IncludeIsAfterExclude) {
  EXPECT_THAT(Shown("defaults: {model: llama-10m}\nmatrix: {batch_size: [1, 8]}\nexclude: [{batch_size: 8}]\n"
                    "include: [{batch_size: 8, seed: 5}]",
                    {"batch_size", "seed"}),
              ElementsAre("1 1234", "8 5"));
}

TEST(Expand, IncludeListsAndComparisons) {
  const std::string grid = "defaults: {model: llama-10m}\nmatrix: {batch_size: [1, 2, 4]}\n";
  EXPECT_THAT(Shown(grid + "include: [{batch_size: '>1', seed: 5}]", {"batch_size", "seed"}),
              ElementsAre("1 1234", "2 5", "4 5"));
  // A list for an axis is one entry for each value; a list for another field repeats the point.
  EXPECT_THAT(Shown(grid + "include: [{batch_size: [4, 8], seed: [5, 6]}]", {"batch_size", "seed"}),
              ElementsAre("1 1234", "2 1234", "4 5", "4 6", "8 5", "8 6"));
  EXPECT_THAT(RefusalOfExpansion(grid + "include: [{batch_size: '>4', seed: 5}]"),
              HasSubstr("s.yaml:4:24: no combination has such a batch_size, and a comparison adds no point"));
}

TEST(Expand, IncludeWithoutAxesListsPoints) {
  EXPECT_THAT(Shown("defaults: {model: llama-10m}\ninclude: [{seed: 5}, {batch_size: [1, 2], seed: 6}]",
                    {"batch_size", "seed"}),
              ElementsAre("1 5", "1 6", "2 6"));
}

TEST(Expand, ImpossiblePointsAreErrorsAtTheValueAtFault) {
  EXPECT_EQ(RefusalOfExpansion("matrix:\n"
                               "  model: [llama-10m, gpt-10m]\n"
                               "  seq_length: [512, 2048]\n"
                               "  batch_size: [1, 2]\n"),
            "s.yaml:4:21: seq_length 2048 is beyond this gpt's 1024 positions "
            "(in the point model: gpt-10m, seq_length: 2048, batch_size: 1)");
  EXPECT_THAT(RefusalOfExpansion("defaults: {model: llama-10m}\nmatrix: {hidden: [256, 250]}"),
              HasSubstr("s.yaml:3:24: hidden 250 is not divisible by heads 4"));
  EXPECT_THAT(RefusalOfExpansion("defaults: {family: llama, layers: 2, hidden: 66, heads: 4, ffn: 8, vocab: 256}"),
              HasSubstr("s.yaml:2:57: hidden 66 is not divisible by heads 4"));
  EXPECT_THAT(RefusalOfExpansion("defaults: {model: llama-10m}\nmatrix: {checkpointing: [none, full/9]}"),
              HasSubstr("s.yaml:3:32: checkpointing full/9 spans more than the 8 layers"));
  EXPECT_THAT(RefusalOfExpansion("defaults: {family: gpt}\nmatrix: {model: [llama-10m]}"),
              HasSubstr("s.yaml:2:20: family is gpt, but the model llama-10m is a llama"));
  EXPECT_THAT(RefusalOfExpansion("defaults: {batch_size: 2}"),
              HasSubstr("s.yaml:2:11: layers is not given; name a model"));
}

TEST(Expand, AllImpossiblePointsAreShownAtOnce) {
  const std::string text = RefusalOfExpansion(
      "matrix:\n"
      "  model: [gpt-10m]\n"
      "  seq_length: [2048, 4096, 512]\n"
      "  checkpointing: [none, full/8]\n");
  EXPECT_THAT(text, HasSubstr("s.yaml:4:16: seq_length 2048"));
  EXPECT_THAT(text, HasSubstr("s.yaml:4:22: seq_length 4096"));
  EXPECT_THAT(text, HasSubstr("s.yaml:5:25: checkpointing full/8"));
}

TEST(Expand, AGridWithoutEndIsRefused) {
  EXPECT_THAT(RefusalOfExpansion("defaults: {model: llama-10m}\n"
                                 "matrix: {seed: 1..100000, batch_size: 1..1000}"),
              HasSubstr("s.yaml:3:39: with this axis the grid has more than 10000000 combinations"));
}

// Everything that multiplies counts against the one limit, before any of it is made.
TEST(Expand, CountsThePointsThatIncludeMultiplies) {
  const std::string model = "defaults: {model: llama-10m}\n";
  // Additions to a combination, from one entry and from several.
  EXPECT_THAT(RefusalOfExpansion(model + "matrix: {batch_size: [1, 2]}\ninclude:\n"
                                         "- {seed: 1..100000, steps: 1..1000}\n"),
              HasSubstr("s.yaml:5:3: with this entry the sweep has more than 10000000 combinations"));
  EXPECT_THAT(RefusalOfExpansion(model + "matrix: {batch_size: [1, 2]}\ninclude:\n"
                                         "- {seed: 1..100000}\n- {steps: 1..1000}\n"),
              HasSubstr("s.yaml:6:3: with this entry the sweep has more than 10000000 combinations"));
  // The same additions to many combinations.
  EXPECT_THAT(RefusalOfExpansion(model + "matrix: {batch_size: 1..100000}\ninclude:\n- {seed: 1..1000}\n"),
              HasSubstr("s.yaml:5:3: with this entry the sweep has more than 10000000 combinations"));
  // Points beside the grid.
  EXPECT_THAT(RefusalOfExpansion(
                  model + "matrix: {batch_size: [1]}\ninclude:\n- {batch_size: 2, seed: 1..100000, steps: 1..1000}\n"),
              HasSubstr("s.yaml:5:3: with this entry the sweep has more than 10000000 combinations"));
  EXPECT_THAT(RefusalOfExpansion(model + "include:\n- {seed: 1..100000, steps: 1..1000}\n"),
              HasSubstr("s.yaml:4:3: with this entry the sweep has more than 10000000 combinations"));
  // Entries that stand for one entry for each combination of their values.
  EXPECT_THAT(RefusalOfExpansion(model + "matrix: {batch_size: [1], seed: [1], steps: [1]}\ninclude:\n"
                                         "- {batch_size: 2..3000, seed: 2..3000, steps: 2..3000}\n"),
              HasSubstr("have more than 2000000 values"));
}

TEST(Expand, ValuesAreCountedOverTheWholeFile) {
  std::string text = "include:\n";
  for (int i = 0; i < 3; ++i) text += "- {seed: 1..900000}\n";
  EXPECT_THAT(RefusalOfExpansion(text),
              HasSubstr("s.yaml:5:10: with this the axes and conditions of the file have more than 2000000 values"));
  text = "exclude:\n";
  for (int i = 0; i < 3; ++i) text += "- {seed: 1..900000}\n";
  EXPECT_THAT(RefusalOfExpansion(text), HasSubstr("s.yaml:5:10: with this the axes and conditions"));
  text = "launch:\n  rules:\n";
  for (int i = 0; i < 3; ++i) text += "  - {when: {seed: 1..900000}, set: {cpus: 1}}\n";
  EXPECT_THAT(RefusalOfExpansion(text), HasSubstr("s.yaml:6:19: with this the axes and conditions"));
  text = "matrix:\n  seed: [1..900000, 1..900000]\n";
  EXPECT_THAT(RefusalOfExpansion(text), HasSubstr("s.yaml:3:21: with this seed has more than 1000000 values"));
  text = "zip:\n";
  for (int i = 0; i < 3; ++i) text += "- {seed: 1..900000}\n";
  EXPECT_THAT(RefusalOfExpansion(text), HasSubstr("s.yaml:5:10: with this the axes and conditions"));
}

TEST(Expand, ConditionsThatTakeTooLongAreRefused) {
  std::string text = "defaults: {model: llama-10m}\nmatrix: {seed: 1..500000}\nexclude:\n";
  EXPECT_THAT(RefusalOfExpansion(text + "- {seed: 1..500000}\n"),
              HasSubstr("s.yaml:5:10: with this, to hold conditions against all combinations takes more than "
                        "2000000000 comparisons"));
  text = "defaults: {model: llama-10m}\nmatrix: {seed: 1..1000000, batch_size: 1..10}\nexclude:\n";
  for (int i = 0; i < 300; ++i) text += "- {batch_size: 11}\n";
  EXPECT_THAT(RefusalOfExpansion(text), HasSubstr("s.yaml:204:3: with this, to hold conditions"));
}

TEST(Expand, StreamsTheSamePoints) {
  const Sweep sweep = ParseSweep(
      "name: s\nmatrix: {model: [llama-10m, gpt-10m, stack-1b], checkpointing: [none, selective, full, full/2],\n"
      "  learning_rate: 1e-4..1e-2*10, batch_size: 1..64*2, precision: [bf16, fp32]}\n"
      "include: [{seed: 5, batch_size: 4}]",
      "s.yaml");
  const auto points = Expand(sweep);
  ASSERT_THAT(points, SizeIs(3 * 4 * 3 * 7 * 2));
  std::set<std::string> ids;
  size_t i = 0;
  ForEachPoint(sweep, [&](const PointView& view) {
    ASSERT_LT(i, points.size());
    EXPECT_EQ(view.id, points[i].id);
    EXPECT_EQ(view.encoded, EncodeSpec(points[i].spec));
    EXPECT_EQ(view.id, PointId(view.spec));
    EXPECT_EQ(view.id, PointId(DecodeSpec(ParseJson(view.encoded, "spec"), "spec")));
    ids.insert(std::string(view.id));
    ++i;
  });
  EXPECT_EQ(i, points.size());
  EXPECT_EQ(ids.size(), points.size());
}

// For speed, the walk builds specs in its own way; BuildSpec is the definition.
TEST(Expand, BuildsWhatBuildSpecBuilds) {
  for (const char* model : {"llama-10m", "gpt-25m", "stack-3b", "llama-32b"}) {
    const auto points =
        ExpandText(std::string("defaults: {batch_size: 3, dropout: 0.25, kv_heads: 8}\nmatrix: {model: [") + model +
                   "], heads: [8], hidden: [512], learning_rate: [2e-5], precision: [fp32]}");
    ASSERT_THAT(points, SizeIs(1));
    std::vector<Problem> problems;
    const RunSpec spec = BuildSpec({{"model", model},
                                    {"batch_size", 3},
                                    {"dropout", 0.25},
                                    {"kv_heads", 8},
                                    {"heads", 8},
                                    {"hidden", 512},
                                    {"learning_rate", 2e-5},
                                    {"precision", "fp32"}},
                                   problems);
    if (std::string_view(model) != "llama-32b") {
      EXPECT_THAT(problems, IsEmpty());
    }
    EXPECT_EQ(EncodeSpec(points[0].spec), EncodeSpec(spec));
  }
}

// Only some points state whether ranks share sequences.
TEST(SpecEncoder, TellsNothingSaidFromFalse) {
  SpecEncoder encoder;
  RunSpec spec;
  for (const std::optional<bool> said : {std::optional<bool>(), std::optional(false), std::optional<bool>(),
                                         std::optional(true), std::optional(false)}) {
    spec.sequence_parallel = said;
    EXPECT_EQ(encoder.Encode(spec), EncodePoint(spec));
  }
}

TEST(SpecEncoder, GivesTheSameTextAsEncodeSpecInAnyOrder) {
  SpecEncoder encoder;
  std::vector<RunSpec> specs;
  for (const Point& point : ExpandText("matrix: {model: [llama-10m, gpt-10m, stack-1b], batch_size: [1, 64, 7]}\n"
                                       "include: [{model: llama-25m, data: 'a \"quoted\" \\ path', seed: 99}]")) {
    specs.push_back(point.spec);
  }
  specs.emplace_back();  // the encoder starts with an empty spec
  specs.emplace_back();
  specs.back().family = ModelFamily::kOther;  // a family with fewer fields
  for (size_t i = 0; i < 3 * specs.size(); ++i) {
    const RunSpec& spec = specs[i * 7 % specs.size()];
    EXPECT_EQ(encoder.Encode(spec), EncodeSpec(spec));
  }
  SpecEncoder fresh;
  EXPECT_EQ(fresh.Encode(RunSpec()), EncodeSpec(RunSpec()));
}

TEST(ShippedSweeps, AllExpandWithoutAWarning) {
  const std::map<std::string, size_t> points = {{"activation-checkpointing.yaml", 5},
                                                {"aws-blackwell-1b.yaml", 3},
                                                {"aws-blackwell.yaml", 16},
                                                {"convergence.yaml", 18},
                                                {"demo.yaml", 8},
                                                {"formats-by-size.yaml", 24},
                                                {"nightly.yaml", 18},
                                                {"parallelism.yaml", 74},
                                                {"precision.yaml", 15},
                                                {"sagemaker.yaml", 3},
                                                {"scaling.yaml", 7},
                                                {"search.yaml", 60}};
  size_t seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(RIDGELINE_SOURCE_DIR "/sweeps")) {
    const std::string name = entry.path().filename();
    ASSERT_TRUE(points.contains(name)) << name << " is not listed here";
    const Sweep sweep = LoadSweep(entry.path());
    Expansion expansion;
    EXPECT_THAT(Expand(sweep, &expansion), SizeIs(points.at(name))) << name;
    EXPECT_THAT(expansion.warnings, IsEmpty());
    // Nothing here defines `batch_size: max`.
    EXPECT_EQ(expansion.duplicates, HasLargestBatch(sweep) ? 12 : 0);
    EXPECT_EQ(sweep.name + ".yaml", name);
    EXPECT_FALSE(sweep.description.empty());
    EXPECT_FALSE(sweep.reports.empty());
    ++seen;
  }
  EXPECT_EQ(seen, points.size());
}

TEST(ShippedSweeps, TheMillionOfTheBenchmarkIsAMillion) {
  EXPECT_EQ(ForEachPoint(LoadSweep(RIDGELINE_SOURCE_DIR "/bench/million.yaml"), [](const PointView&) {}).points,
            1'000'000);
}

TEST(ShippedSweeps, TheAwsPointsAreRankZeroOfEight) {
  const auto points = Expand(LoadSweep(RIDGELINE_SOURCE_DIR "/sweeps/aws-blackwell-1b.yaml"));
  ASSERT_THAT(points, SizeIs(3));
  for (const Point& point : points) {
    EXPECT_EQ(point.spec.model, "stack-1b");
    EXPECT_EQ(point.spec.seq_length, 8192);
    EXPECT_EQ(point.spec.ranks, 8);
    EXPECT_EQ(point.spec.shard, ShardMode::kFull);
    EXPECT_EQ(point.spec.communicator, "virtual");
    EXPECT_EQ(point.spec.state_precision, "bf16");
  }
}

}  // namespace
}  // namespace ridgeline::sweep
