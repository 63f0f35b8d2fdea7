// Values that a command line gives in addition to a sweep's file.
#include "sweep/given.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "sweep/expand.h"
#include "sweep/sweep.h"
#include "tests/base/temp_dir.h"

namespace ridgeline::sweep {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using Ids = std::vector<std::string>;

Ids IdsOf(const Sweep& sweep) {
  Ids ids;
  for (const Point& point : Expand(sweep)) ids.push_back(point.id);
  return ids;
}

Ids IdsOf(const std::string& text) { return IdsOf(ParseSweep("name: s\n" + text, "s.yaml")); }

Sweep ParseGiven(const std::string& text, const Given& given) {
  return ParseSweep("name: s\n" + text, "s.yaml", {}, given);
}

// Points of the sweep with what was given, which are the same where its text is read again.
Ids IdsGiven(const std::string& text, const Given& given) {
  const Sweep sweep = ParseGiven(text, given);
  const Ids ids = IdsOf(sweep);
  EXPECT_EQ(IdsOf(ParseSweep(sweep.text, "kept.yaml")), ids) << sweep.text;
  return ids;
}

std::string GivenRefusal(const std::string& text, const Given& given) {
  try {
    IdsOf(ParseGiven(text, given));
  } catch (const Error& e) {
    return e.message();
  }
  return "accepted";
}

constexpr const char* kGrid =
    "defaults: {model: llama-10m, seq_length: 64}\n"
    "measure: {steps: 5}\n"
    "matrix: {batch_size: [1, 2], precision: [fp32, bf16]}\n"
    "zip: {seed: [1, 2], learning_rate: [1e-3, 1e-4]}\n";

// A Hugging Face config.json is the shape in it, which the sweep's text then has.
TEST(ModelFile, IsItsShape) {
  const TempDir folder;
  std::ofstream(folder.path() / "config.json")
      << R"({"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,)"
      << R"("num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256})";
  std::ofstream(folder.path() / "broken.json") << R"({"model_type": "bloom"})";
  const auto parse = [&](const std::string& text, const Given& given = {}) {
    return ParseSweep("name: s\n" + text, folder.path() / "s.yaml", {}, given);
  };
  const auto wrong = [&](const std::string& text) -> std::string {
    try {
      IdsOf(parse(text));
    } catch (const Error& e) {
      return e.message();
    }
    return "accepted";
  };
  const Sweep sweep = parse("defaults: {model: config.json, seq_length: 64}\n");
  const Ids preset = IdsOf("defaults: {model: llama-8b, seq_length: 64}\n");
  EXPECT_EQ(IdsOf(sweep), preset);
  EXPECT_EQ(IdsOf(ParseSweep(sweep.text, "kept.yaml")), preset) << sweep.text;
  EXPECT_EQ(IdsOf(parse("defaults: {model: config.json, seq_length: 64, layers: 2}\n")),
            IdsOf("defaults: {model: llama-8b, seq_length: 64, layers: 2}\n"));
  const Given given{.set = {"model=" + (folder.path() / "config.json").string()}, .only = {}};
  EXPECT_EQ(IdsOf(parse("defaults: {seq_length: 64}\nmatrix: {model: [llama-10m, gpt-10m]}\n", given)), preset);
  EXPECT_THAT(wrong("matrix: {model: [llama-10m, config.json]}\n"), HasSubstr("put it under defaults"));
  EXPECT_THAT(wrong("defaults: {model: broken.json}\n"), HasSubstr("a model of type 'bloom'"));
  EXPECT_THAT(wrong("defaults: {model: none.json}\n"), HasSubstr("unknown model 'none.json'"));
}

TEST(Given, IsAsInTheFile) {
  const struct {
    Given given;
    std::string file;
  } cases[] = {
      {{{"seq_length=128"}, {}},
       "defaults: {model: llama-10m, seq_length: 128}\nmeasure: {steps: 5}\n"
       "matrix: {batch_size: [1, 2], precision: [fp32, bf16]}\nzip: {seed: [1, 2], learning_rate: [1e-3, 1e-4]}\n"},
      {{{"steps=7", "batch_size=4..16*2"}, {}},
       "defaults: {model: llama-10m, seq_length: 64}\nmeasure: {steps: 7}\n"
       "matrix: {batch_size: [4, 8, 16], precision: [fp32, bf16]}\nzip: {seed: [1, 2], learning_rate: [1e-3, 1e-4]}\n"},
      {{{"precision = bf16", "checkpointing=none,full"}, {}},
       "defaults: {model: llama-10m, seq_length: 64}\nmeasure: {steps: 5}\n"
       "matrix: {batch_size: [1, 2], precision: bf16, checkpointing: [none, full]}\n"
       "zip: {seed: [1, 2], learning_rate: [1e-3, 1e-4]}\n"},
      {{{"seed=3", "batch_size=[8]"}, {}},
       "defaults: {model: llama-10m, seq_length: 64}\nmeasure: {steps: 5}\n"
       "matrix: {batch_size: 8, precision: [fp32, bf16]}\nzip: {seed: [3, 3], learning_rate: [1e-3, 1e-4]}\n"},
      {{{}, {"batch_size=2", "learning_rate<1e-3"}},
       "defaults: {model: llama-10m, seq_length: 64}\nmeasure: {steps: 5}\n"
       "matrix: {batch_size: 2, precision: [fp32, bf16]}\nzip: {seed: [2], learning_rate: [1e-4]}\n"},
      {{{"batch_size=1..8"}, {"batch_size>=3", "seed=1", "precision!=fp32", "seq_length=64,128"}},
       "defaults: {model: llama-10m, seq_length: 64}\nmeasure: {steps: 5}\n"
       "matrix: {batch_size: 3..8, precision: [bf16]}\nzip: {seed: [1], learning_rate: [1e-3]}\n"},
  };
  for (const auto& [given, file] : cases) EXPECT_EQ(IdsGiven(kGrid, given), IdsOf(file)) << file;
}

TEST(Given, GoesBeforeWhatIncludeAdds) {
  const std::string file =
      "defaults: {model: llama-10m}\nmatrix: {batch_size: [1, 2]}\ninclude: [{batch_size: 2, seq_length: 64}, "
      "{seq_length: 32}]\n";
  EXPECT_EQ(IdsGiven(file, {{"seq_length=128"}, {}}),
            IdsOf("defaults: {model: llama-10m, seq_length: 128}\nmatrix: {batch_size: [1, 2]}\n"));
}

TEST(Given, SelectsWhatIncludeAddsToo) {
  EXPECT_EQ(IdsGiven("defaults: {model: llama-10m}\nmatrix: {batch_size: [1, 2]}\ninclude: [{batch_size: 4}]\n",
                     {{}, {"batch_size>1"}}),
            IdsOf("defaults: {model: llama-10m}\nmatrix: {batch_size: [2, 4]}\n"));
}

TEST(Given, IsKeptBehindTheTextOfTheFile) {
  const Sweep sweep = ParseGiven(kGrid, {{"batch_size=4"}, {"precision=bf16"}});
  EXPECT_THAT(sweep.text, StartsWith("name: s\n" + std::string(kGrid)));
  EXPECT_THAT(sweep.text, HasSubstr("\nset: {\"batch_size\": 4}\nonly: {\"precision\": \"bf16\"}\n"));
  EXPECT_EQ(ParseGiven(kGrid, {}).text, "name: s\n" + std::string(kGrid));
}

// Where nothing can be written behind it, or what is there is replaced.
TEST(Given, IsKeptWhateverTheFileLooksLike) {
  const Ids wanted = IdsOf("defaults: {model: llama-10m}\nmatrix: {batch_size: [4], seed: [2, 1]}\n");
  for (const char* text :
       {"{name: s, defaults: {model: llama-10m}, matrix: {batch_size: [1, 2], seed: [2, 1, 3]}}",
        "  name: s\n  defaults: {model: llama-10m}\n  matrix: {batch_size: 2, seed: [2, 1, 3]}",
        "name: s\ndefaults: {model: llama-10m}\nmatrix: {batch_size: 2, seed: [2, 1, 3]}\n...\n",
        "name: s\ndefaults: {model: llama-10m}\nmatrix: {seed: [2, 1, 3]}\nset: {batch_size: 16}\nonly: {seed: 3}\n",
        "defaults: {model: llama-10m}\nmatrix: {batch_size: 2, seed: [2, 1, 3]}\nname: |\n  s"}) {
    const Sweep sweep = ParseSweep(text, "s.yaml", {}, {{"batch_size=4"}, {"seed=1,2"}});
    Ids ids = IdsOf(sweep);
    EXPECT_EQ(IdsOf(ParseSweep(sweep.text, "kept.yaml")), ids) << sweep.text;
    EXPECT_EQ(ids, wanted) << text;
  }
}

TEST(Given, OnlyMayBeAFormulaThatStandsAlone) {
  const Given given{{}, {"{{batch_size == 2 and precision == bf16}}"}};
  EXPECT_EQ(IdsGiven(kGrid, given), IdsGiven(kGrid, {{}, {"batch_size=2", "precision=bf16"}}));
  EXPECT_THAT(GivenRefusal(kGrid, {{}, {"batch_size=2", "{{batch_size == 2}}"}}), HasSubstr("is the only condition"));
  EXPECT_THAT(GivenRefusal(kGrid + std::string("only: {batch_size: 2}\n"), given), HasSubstr("is the only condition"));
}

TEST(Given, ErrorsNameTheOption) {
  EXPECT_EQ(GivenRefusal(kGrid, {{"batch_sise=4"}, {}}), "-S: unknown field 'batch_sise', did you mean 'batch_size'?");
  EXPECT_THAT(GivenRefusal(kGrid, {{"batch_size=many"}, {}}), StartsWith("-S: batch_size "));
  EXPECT_THAT(GivenRefusal(kGrid, {{"hidden=100"}, {}}), StartsWith("-S: head_dim 25 is odd"));
  EXPECT_THAT(GivenRefusal(kGrid, {{"seed=1,2,3"}, {}}), HasSubstr("axes that move together are equally long"));
  EXPECT_THAT(GivenRefusal(kGrid, {{}, {"batch_sise=4"}}), StartsWith("--only: unknown field 'batch_sise'"));
  EXPECT_EQ(GivenRefusal(kGrid, {{}, {"batch_size=4"}}), "--only: no point of the sweep is so");
  EXPECT_THAT(GivenRefusal(kGrid, {{"batch_size=max"}, {"batch_size=1"}}), HasSubstr("no condition can depend on it"));
  EXPECT_THAT(GivenRefusal(kGrid, {{"batch_size"}, {}}), HasSubstr("field=value"));
  EXPECT_THAT(GivenRefusal(kGrid, {{"batch_size="}, {}}), HasSubstr("is not a value"));
  EXPECT_THAT(GivenRefusal(kGrid, {{"data=x]\nname: other"}, {}}), Not(HasSubstr("accepted")));
  EXPECT_EQ(GivenRefusal(kGrid, {{"seed=1", "seed=2"}, {}}), "seed is given twice");
  EXPECT_THAT(GivenRefusal("set: [batch_size]\n", {}), StartsWith("s.yaml:2:6: set is a mapping of fields"));
  EXPECT_THAT(GivenRefusal("set: {batch_sise: 4}\n", {}), StartsWith("s.yaml:2:7: unknown field 'batch_sise'"));
  EXPECT_THAT(GivenRefusal("only: {batch_size: 4}\ndefaults: {model: llama-10m}\n", {}),
              StartsWith("s.yaml:2:7: no point"));
}

}  // namespace
}  // namespace ridgeline::sweep
