#include "sweep/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "sweep/expand.h"
#include "tests/base/temp_dir.h"

namespace ridgeline::sweep {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

Sweep Parse(const std::string& text) { return ParseSweep("name: s\n" + text, "s.yaml"); }

// The errors of a sweep. Its first line (`name: s`) is added.
std::string Refusal(const std::string& text) {
  try {
    const Sweep sweep = Parse(text);
    Expand(sweep);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
    return e.message();
  }
  return "accepted";
}

std::string RawRefusal(const std::string& text) {
  try {
    ParseSweep(text, "s.yaml");
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
    return e.message();
  }
  return "accepted";
}

std::vector<std::string> AxisTexts(const std::string& field, const std::string& value) {
  const Sweep sweep = Parse("matrix: {" + field + ": " + value + "}");
  std::vector<std::string> texts;
  for (const Assignment& assignment : sweep.groups.at(0).at(0)) {
    RunSpec spec;
    SetValue(spec, *assignment.field, assignment.value);
    texts.push_back(FieldText(spec, *assignment.field));
  }
  return texts;
}

TEST(Sweep, ReadsEverySection) {
  const Sweep sweep = ParseSweep(R"(
name: everything
description: |
  Two
  lines.
defaults: {model: llama-10m, precision: bf16}
matrix:
  batch_size: [1, 8]
zip:
  - {seq_length: [128, 256], seed: [1, 2]}
include: [{batch_size: 16}]
exclude: [{batch_size: 8, seq_length: ">128"}]
measure: {warmup_steps: 1, steps: 4, repeats: 2}
launch:
  launcher: local
  cpus: 2
  memory_limit: 8GB
  time_limit: 10m
  bundle: 3
  max_parallel: 2
  trainer: [python3, train.py, --x]
  local: {cores: [0, 1], nested: {a: true}}
report: [activation-checkpointing, other_1]
)",
                                 "dir/every.yaml");
  EXPECT_EQ(sweep.name, "everything");
  EXPECT_EQ(sweep.description, "Two\nlines.\n");
  EXPECT_EQ(sweep.file, "dir/every.yaml");
  EXPECT_EQ(sweep.defaults.size(), 5U);
  EXPECT_EQ(sweep.groups.size(), 2U);
  EXPECT_EQ(sweep.include.size(), 1U);
  EXPECT_EQ(sweep.exclude.size(), 1U);
  EXPECT_EQ(sweep.launch.launcher, "local");
  EXPECT_EQ(sweep.launch.cpus, 2);
  EXPECT_EQ(sweep.launch.memory_limit_bytes, 8'000'000'000);
  EXPECT_EQ(sweep.launch.time_limit_s, 600);
  EXPECT_EQ(sweep.launch.bundle, 3);
  EXPECT_EQ(sweep.launch.max_parallel, 2);
  EXPECT_THAT(sweep.launch.trainer, ElementsAre("python3", "train.py", "--x"));
  EXPECT_EQ(sweep.launch.config.at("local"), Json::parse(R"({"cores": [0, 1], "nested": {"a": true}})"));
  EXPECT_EQ(sweep.launch.config.at("memory_limit"), "8GB");
  EXPECT_THAT(sweep.reports, ElementsAre("activation-checkpointing", "other_1"));
  std::vector<std::string_view> varying;
  for (const Field* field : VaryingFields(sweep)) varying.push_back(field->name);
  EXPECT_THAT(varying, ElementsAre("batch_size", "seq_length", "seed"));
}

// `cancel` and `status` need only the name of a file whose trainers they do not know.
TEST(Sweep, HasANameWhateverElseIsWrongInItsFile) {
  const TempDir dir;
  const auto file = dir.path() / "sweep.yaml";
  const auto name_of = [&](const std::string& text) {
    WriteFile(file, text);
    try {
      return LoadSweepName(file);
    } catch (const Error& error) {
      return error.message();
    }
  };
  EXPECT_EQ(name_of("name: mine\ndefaults: {trainer: of-elsewhere, model: none}\nmatrix: 3\n"), "mine");
  EXPECT_THAT(name_of("matrix: {batch_size: [1]}\n"), HasSubstr("name is not given"));
  EXPECT_THAT(name_of("name: [\n"), HasSubstr("sweep.yaml:"));
  EXPECT_THAT(name_of("name: 3\n"), HasSubstr("name must be text"));
}

TEST(Sweep, LaunchHasDefaults) {
  const Sweep sweep = Parse("defaults: {model: llama-10m}");
  EXPECT_EQ(sweep.launch.launcher, "local");
  EXPECT_EQ(sweep.launch.bundle, 1);
  EXPECT_EQ(sweep.launch.memory_limit_bytes, 0);
  EXPECT_EQ(sweep.launch.time_limit_s, 0);
  EXPECT_THAT(sweep.launch.trainer, IsEmpty());
  EXPECT_EQ(sweep.launch.config, Json::object());
}

TEST(Sweep, UnknownKeysNameTheNearest) {
  EXPECT_THAT(Refusal("matrx: {batch_size: [1]}"),
              HasSubstr("s.yaml:2:1: unknown section 'matrx', did you mean 'matrix'?"));
  EXPECT_THAT(Refusal("defaults:\n  batch_sise: 4"),
              HasSubstr("s.yaml:3:3: unknown field 'batch_sise', did you mean 'batch_size'?"));
  EXPECT_THAT(Refusal("matrix: {checkpoint: [none]}"), HasSubstr("did you mean 'checkpointing'?"));
  EXPECT_THAT(Refusal("zip: [{presicion: [bf16]}]"),
              HasSubstr("s.yaml:2:8: unknown field 'presicion', did you mean 'precision'?"));
  EXPECT_THAT(Refusal("exclude: [{seqlength: 1}]"), HasSubstr("did you mean 'seq_length'?"));
  EXPECT_THAT(Refusal("include: [{seqlength: 1}]"), HasSubstr("did you mean 'seq_length'?"));
  EXPECT_THAT(Refusal("measure: {warmup: 1}"), HasSubstr("unknown field 'warmup'"));
  EXPECT_THAT(Refusal("measure: {batch_size: 1}"),
              HasSubstr("unknown field 'batch_size'; known are warmup_steps, steps, repeats"));
  EXPECT_THAT(Refusal("launch: {memory_limt: 1}"), HasSubstr("did you mean 'memory_limit'?"));
  EXPECT_THAT(Refusal("launch: {locl: {a: 1}}"), HasSubstr("did you mean 'local'?"));
  EXPECT_THAT(Refusal("launch: {retry: {preempted: -1}}"),
              HasSubstr("preempted must be an integer between 0 and 1000"));
  EXPECT_THAT(Refusal("launch: {retry: {crashed: 1}}"), HasSubstr("unknown reason to retry for 'crashed'"));
  EXPECT_THAT(Refusal("launch: {bundle: soon}"), HasSubstr("bundle is a number of points, or a duration"));
  EXPECT_THAT(Refusal("launch: {frobnicate: 1}"), HasSubstr("unknown launch setting 'frobnicate'; known are launcher"));
  EXPECT_THAT(Refusal("defaults: {model: lama-10m}"),
              HasSubstr("s.yaml:2:19: unknown model 'lama-10m'; the nearest are llama-10m, llama-5m, llama-25m"));
  EXPECT_THAT(Refusal("defaults: {model: llama-10m, precision: bf61}"), HasSubstr("did you mean 'bf16'?"));
  EXPECT_THAT(Refusal("defaults: {model: llama-10m}\nmatrix: {checkpointing: [selectiv]}"),
              HasSubstr("s.yaml:3:26: checkpointing 'selectiv' is not one of none, selective, full, full/K, did you "
                        "mean 'selective'?"));
}

TEST(Sweep, AnotherLaunchersSettingsPass) {
  EXPECT_EQ(Parse("launch: {slurm: {partition: gpu}}").launch.config.at("slurm").at("partition"), "gpu");
}

TEST(Sweep, DuplicateKeysAreErrors) {
  EXPECT_THAT(Refusal("name: again"), HasSubstr("s.yaml:2:1: 'name' is given twice"));
  EXPECT_THAT(Refusal("defaults: {seed: 1, seed: 2}"), HasSubstr("s.yaml:2:21: 'seed' is given twice"));
  EXPECT_THAT(Refusal("matrix:\n  seed: [1]\n  seed: [2]"), HasSubstr("s.yaml:4:3: 'seed' is given twice"));
  EXPECT_THAT(Refusal("launch: {local: {a: 1, a: 2}}"), HasSubstr("s.yaml:2:24: 'a' is given twice"));
  EXPECT_THAT(Refusal("matrix: {seed: [1]}\nzip: [{seed: [2], steps: [1]}]"), HasSubstr("seed is an axis already"));
  EXPECT_THAT(Refusal("defaults: {steps: 3}\nmeasure: {steps: 4}"),
              HasSubstr("s.yaml:3:18: steps is given in defaults too (line 2)"));
}

TEST(Sweep, WrongTypesAreErrors) {
  EXPECT_THAT(RawRefusal("[1, 2]"), HasSubstr("s.yaml:1:1: a sweep is a mapping with a name, not a list"));
  EXPECT_THAT(RawRefusal("just text"), HasSubstr("not \"just text\""));
  EXPECT_THAT(RawRefusal("name: 7"), HasSubstr("s.yaml:1:7: name must be text, not 7"));
  EXPECT_THAT(RawRefusal("name: ''"), HasSubstr("name must be one line"));
  EXPECT_THAT(RawRefusal("name: \"a\\nb\""), HasSubstr("name must be one line"));
  EXPECT_THAT(RawRefusal("description: x"), HasSubstr("s.yaml:1:1: name is not given"));
  EXPECT_THAT(Refusal("description: [a]"), HasSubstr("description must be text, not a list"));
  EXPECT_THAT(Refusal("defaults: [a]"), HasSubstr("defaults is a mapping of fields, not a list"));
  EXPECT_THAT(Refusal("defaults: {batch_size: '8'}"),
              HasSubstr("s.yaml:2:24: batch_size must be an integer, not \"8\""));
  EXPECT_THAT(Refusal("defaults: {batch_size: [8]}"), HasSubstr("batch_size takes one value here, not a list"));
  EXPECT_THAT(Refusal("defaults: {batch_size: 1..8}"), HasSubstr("a range belongs in matrix or zip"));
  EXPECT_THAT(Refusal("defaults: {batch_size: 1.5}"), HasSubstr("must be an integer, not 1.5"));
  EXPECT_THAT(Refusal("defaults: {batch_size: 010_0}"), HasSubstr("must be an integer, not \"010_0\""));
  EXPECT_THAT(Refusal("defaults: {batch_size: }"), HasSubstr("must be an integer, not null"));
  EXPECT_THAT(Refusal("defaults: {batch_size: 0}"), HasSubstr("batch_size is 0, and must be between 1 and"));
  EXPECT_THAT(Refusal("defaults: {tied_head: yes}"), HasSubstr("not \"yes\""));
  EXPECT_THAT(Refusal("defaults: {precision: 16}"), HasSubstr("precision must be a text, not 16"));
  EXPECT_THAT(Refusal("defaults: {learning_rate: .inf}"), HasSubstr("learning_rate is inf"));
  EXPECT_THAT(Refusal("defaults: {learning_rate: .nan}"), HasSubstr("learning_rate is nan"));
  EXPECT_THAT(Refusal("defaults: {seed: 99999999999999999999999}"), HasSubstr("seed"));
  EXPECT_THAT(Refusal("defaults: {1: 2}"), HasSubstr("the name of a field must be text, not 1"));
  EXPECT_THAT(Refusal("matrix: 3"), HasSubstr("matrix is a mapping of fields, not 3"));
  EXPECT_THAT(Refusal("matrix: {batch_size: [[1]]}"), HasSubstr("batch_size takes one value here, not a list"));
  EXPECT_THAT(Refusal("exclude: {batch_size: 1}"), HasSubstr("exclude is a list of mappings, not a mapping"));
  EXPECT_THAT(Refusal("exclude: [1]"), HasSubstr("an entry of exclude is a mapping of fields, not 1"));
  EXPECT_THAT(Refusal("include: [{}]"), HasSubstr("an entry of include is a mapping of fields, not an empty one"));
  EXPECT_THAT(Refusal("launch: local"), HasSubstr("launch is a mapping, not \"local\""));
  EXPECT_THAT(Refusal("launch: {launcher: ../evil}"), HasSubstr("a launcher's name is of letters"));
  EXPECT_THAT(Refusal("launch: {cpus: 0}"), HasSubstr("cpus must be an integer between 1 and 4096, not 0"));
  EXPECT_THAT(Refusal("launch: {memory_limit: 8 gigs}"), HasSubstr("memory_limit is a size such as 8GB"));
  EXPECT_THAT(Refusal("launch: {memory_limit: -5}"), HasSubstr("memory_limit is a size"));
  EXPECT_THAT(Refusal("launch: {time_limit: soon}"), HasSubstr("time_limit is a duration such as 90s"));
  EXPECT_THAT(Refusal("launch: {trainer: []}"), HasSubstr("trainer is a list: a program, then its arguments"));
  EXPECT_THAT(Refusal("launch: {trainer: [cd, /x, '&&', ./t]}"), HasSubstr("'cd' is a shell's word"));
  EXPECT_THAT(Refusal("launch: {trainer: [bash, -lc, 'source e && ./t']}"), HasSubstr("end it with the program and"));
  EXPECT_THAT(Refusal("launch: {trainer: [a, 3]}"), HasSubstr("an argument of trainer must be text, not 3"));
  EXPECT_THAT(Refusal("report: {a: 1}"), HasSubstr("report is a list of names"));
  EXPECT_THAT(Refusal("report: [../../etc/passwd]"), HasSubstr("a report's name is of letters"));
}

TEST(Sweep, SizesAndDurations) {
  const auto limit = [](const std::string& text) {
    return Parse("launch: {memory_limit: " + text + "}").launch.memory_limit_bytes;
  };
  EXPECT_EQ(limit("64000000"), 64'000'000);
  EXPECT_EQ(limit("8 GB"), 8'000'000'000);
  EXPECT_EQ(limit("1.5GiB"), 1'610'612'736);
  EXPECT_EQ(limit("512MiB"), 536'870'912);
  const auto time = [](const std::string& text) {
    return Parse("launch: {time_limit: " + text + "}").launch.time_limit_s;
  };
  EXPECT_EQ(time("90"), 90);
  EXPECT_EQ(time("90s"), 90);
  EXPECT_EQ(time("10m"), 600);
  EXPECT_EQ(time("1.5h"), 5400);
}

TEST(Sweep, EmptyAxesAndUnequalZipsAreErrors) {
  EXPECT_THAT(Refusal("matrix: {batch_size: []}"), HasSubstr("s.yaml:2:22: batch_size has no values"));
  EXPECT_THAT(
      Refusal("zip: [{batch_size: [1, 2], seed: [1, 2, 3]}]"),
      HasSubstr("s.yaml:2:35: seed has 3 values, but batch_size has 2: axes that move together are equally long"));
}

TEST(Sweep, Ranges) {
  EXPECT_THAT(AxisTexts("batch_size", "1..64*2"), ElementsAre("1", "2", "4", "8", "16", "32", "64"));
  EXPECT_THAT(AxisTexts("batch_size", "[1..60*2]"), ElementsAre("1", "2", "4", "8", "16", "32"));
  EXPECT_THAT(AxisTexts("seq_length", "512..2048+512"), ElementsAre("512", "1024", "1536", "2048"));
  EXPECT_THAT(AxisTexts("seq_length", "512..2000+512"), ElementsAre("512", "1024", "1536"));
  EXPECT_THAT(AxisTexts("batch_size", "[1, 3..5, '8 .. 16 * 2', 100]"),
              ElementsAre("1", "3", "4", "5", "8", "16", "100"));
  EXPECT_THAT(AxisTexts("batch_size", "7..7*2"), ElementsAre("7"));
  EXPECT_THAT(AxisTexts("learning_rate", "1e-4..1e-1*10"), ElementsAre("0.0001", "0.001", "0.01", "0.1"));
  EXPECT_THAT(AxisTexts("weight_decay", "0.1..0.5+0.1"), ElementsAre("0.1", "0.2", "0.3", "0.4", "0.5"));
  EXPECT_THAT(AxisTexts("rope_theta", "1e+4..1e+6*10"), ElementsAre("10000", "100000", "1000000"));
  EXPECT_THAT(AxisTexts("data", "[a..b]"), ElementsAre("a..b"));  // text is not a range
}

TEST(Sweep, BadRangesAreErrors) {
  const auto refusal = [](const std::string& range) { return Refusal("matrix: {batch_size: ['" + range + "']}"); };
  EXPECT_THAT(refusal("64..1*2"), HasSubstr("s.yaml:2:23: batch_size: the range '64..1*2' runs backwards"));
  EXPECT_THAT(refusal("1..64*1"), HasSubstr("never ends; its factor must be above 1"));
  EXPECT_THAT(refusal("0..64*2"), HasSubstr("never ends"));
  EXPECT_THAT(refusal("1..64+0"), HasSubstr("never ends; its step must be above 0"));
  EXPECT_THAT(refusal("1..x*2"), HasSubstr("is not of the form FIRST..LAST*FACTOR"));
  EXPECT_THAT(refusal("..64*2"), HasSubstr("is not of the form"));
  EXPECT_THAT(refusal("1..64*"), HasSubstr("is not of the form"));
  EXPECT_THAT(refusal("1..64*2*2"), HasSubstr("is not of the form"));
  EXPECT_THAT(refusal("1...64"), Not(HasSubstr("accepted")));
  EXPECT_THAT(refusal("1..inf+1"), HasSubstr("is not of the form"));
  EXPECT_THAT(refusal("1..9*1.5"), HasSubstr("batch_size must be an integer, not 1.5"));
  EXPECT_THAT(refusal("0..3+1"), HasSubstr("batch_size is 0, and must be between 1"));
  EXPECT_THAT(Refusal("matrix: {seed: 1..1e12+1}"), HasSubstr("has more than 1000000 values"));
}

// Integers are exact up to the largest, and the range ends there.
TEST(Sweep, RangesOfIntegersNeitherRoundNorWrap) {
  EXPECT_THAT(AxisTexts("seed", "999999999999997..999999999999999"),
              ElementsAre("999999999999997", "999999999999998", "999999999999999"));
  EXPECT_THAT(AxisTexts("seed", "123456789012345..123456789012346"), ElementsAre("123456789012345", "123456789012346"));
  EXPECT_THAT(AxisTexts("seed", "1e15..1.7976931348623157e308*1e308"), ElementsAre("1000000000000000"));
  const auto refusal = [](const std::string& range) { return Refusal("matrix: {seed: ['" + range + "']}"); };
  for (const char* range : {"1..9223372036854775807*2", "9223372036854775806..9223372036854775807",
                            "9223372036854775807..9223372036854775807+9223372036854775807", "1..9223372036854775808*4",
                            "9..99999999999999999999*9", "1..1e300*10"}) {
    EXPECT_THAT(refusal(range),
                AllOf(HasSubstr("s.yaml:2:17: seed is "), HasSubstr("and must be between 0 and 1000000000000000")))
        << range;
  }
  for (const char* value : {"9223372036854775807", "9223372036854775808", "18446744073709551616", "1e300", ".inf",
                            "-9223372036854775809", "0xffffffffffffffff"}) {
    EXPECT_THAT(Refusal(std::string("defaults: {seed: ") + value + "}"),
                AllOf(HasSubstr("s.yaml:2:18: seed is "), HasSubstr("and must be between 0 and 1000000000000000")))
        << value;
  }
}

TEST(Sweep, AmountsBeyondTheMostAreErrorsWithTheirPlace) {
  for (const char* name : {"time_limit", "save_time", "launcher_timeout"}) {
    for (const char* value : {"9223372036854775808", "20001d", "1e30h"}) {
      const std::string text = Refusal(std::string("launch:\n  ") + name + ": " + value + "\n");
      EXPECT_THAT(text, AllOf(HasSubstr("s.yaml:3:"), HasSubstr(name), HasSubstr("; 20000d are the most"))) << value;
    }
  }
  for (const char* value : {"9223372036854775808", "1001TB", "99999999999999999999GiB"}) {
    EXPECT_THAT(Refusal(std::string("launch: {memory_limit: ") + value + "}"),
                AllOf(HasSubstr("s.yaml:2:24: memory_limit"), HasSubstr("; 1000TB are the most")))
        << value;
  }
  for (const char* name : {"nodes", "ranks_per_node", "cpus", "max_parallel", "bundle"}) {
    EXPECT_THAT(Refusal(std::string("launch: {") + name + ": 18446744073709551617}"), HasSubstr("s.yaml:2:")) << name;
  }
  EXPECT_THAT(Refusal("launch: {bundle: 99999d}"), HasSubstr("bundle"));
}

// Each value is in its range, but their product is more than can be counted.
TEST(Sweep, ProductsThatOverflowAreErrorsAtTheirFactor) {
  const std::string tokens =
      "defaults: {model: llama-5m, batch_size: 1048576, grad_accumulation: 4096, ranks: 65536,\n"
      "  communicator: virtual, seq_length: 8192}\n";
  EXPECT_THAT(Refusal(tokens), AllOf(HasSubstr("s.yaml:2:41: batch_size 1048576 x seq_length 8192 x grad_accumulation "
                                               "4096 x ranks 65536 are 2.3e+18 tokens a step"),
                                     HasSubstr("the limit is 1e+15")));
  EXPECT_THAT(Refusal("defaults: {model: llama-64b, batch_size: 1048576, seq_length: 67108864}"),
              HasSubstr("s.yaml:2:42: batch_size 1048576 x seq_length 67108864 tokens through 72 layers"));
}

TEST(Sweep, WrongComparisonsAreErrors) {
  EXPECT_THAT(Refusal("exclude: [{batch_size: '>many'}]"),
              HasSubstr("s.yaml:2:24: batch_size: the comparison '>many' needs a number"));
  EXPECT_THAT(Refusal("exclude: [{batch_size: '>'}]"), HasSubstr("needs a number"));
  EXPECT_THAT(Refusal("exclude: [{precision: '>bf16'}]"), HasSubstr("only != works here"));
  EXPECT_THAT(Refusal("exclude: [{precision: '!=bf15'}]"), HasSubstr("did you mean 'bf16'?"));
  EXPECT_THAT(Refusal("exclude: [{batch_size: '==8'}]"), HasSubstr("write the plain value instead of '==8'"));
  EXPECT_THAT(Refusal("exclude: [{batch_size: '=>8'}]"), HasSubstr("comparisons are <, <=, >, >= and !="));
  EXPECT_THAT(Refusal("exclude: [{tied_head: '!=maybe'}]"), HasSubstr("needs true or false"));
  EXPECT_THAT(Refusal("exclude: [{batch_size: ['>8']}]"), HasSubstr("must be an integer, not \">8\""));
  EXPECT_THAT(Refusal("include: [{seed: '>8'}]"), HasSubstr("must be an integer, not \">8\""));
}

TEST(Sweep, AllFaultsOfAFileAreShownInOrder) {
  const std::string text = Refusal(
      "defaults: {model: gpt-10m, batch_sise: 4, precision: bf61}\n"
      "matrix:\n"
      "  seq_length: [512, 4096]\n"
      "  seed: []\n"
      "exclude: [{batch_size: '>x'}]\n"
      "launch: {cpu: 3}\n");
  const std::vector<std::string> in_order = {"s.yaml:2:28: unknown field 'batch_sise'",
                                             "s.yaml:2:54: precision 'bf61'",
                                             "s.yaml:4:21: seq_length 4096 is beyond this gpt's 1024 positions",
                                             "s.yaml:5:9: seed has no values",
                                             "s.yaml:6:24: batch_size: the comparison",
                                             "s.yaml:7:15: unknown launch setting 'cpu', did you mean 'cpus'?"};
  size_t at = 0;
  for (const std::string& line : in_order) {
    const size_t found = text.find(line);
    ASSERT_NE(found, std::string::npos) << line << "\nin\n" << text;
    EXPECT_GE(found, at);
    at = found;
  }
}

TEST(Sweep, AFaultBringsNoOthersThatOnlyFollowFromIt) {
  EXPECT_EQ(Refusal("defaults: {modle: gpt-10m}"), "s.yaml:2:12: unknown field 'modle', did you mean 'model'?");
  EXPECT_EQ(Refusal("defaults: {model: gpt-11m, batch_size: 2}"),
            "s.yaml:2:19: unknown model 'gpt-11m'; the nearest are gpt-10m, gpt-25m, gpt-124m");
  const auto only_fault = [](const std::string& text) {
    const std::string said = Refusal(text);
    return said.find("\ns.yaml:") == std::string::npos ? said : "more than one fault: " + said;
  };
  // A default replaces what is refused: a value, a name, an axis, and values that move with a refused one. So it causes
  // no second error.
  const std::string model = "defaults: {model: llama-10m, ";
  for (const auto& [text, fault] : std::vector<std::pair<std::string, std::string>>{
           {"device: cuda, gpu: h10}", "2:49: gpu 'h10'"},
           {"device: cuda, gpus: h100}", "2:44: unknown field 'gpus'"},
           {"device: cuda}\nmatrix: {gpu: [h10]}", "3:16: gpu 'h10'"},
           {"device: cuda}\nzip: {gpu: [h100, h200], batch_size: [1, x]}", "3:42: batch_size must be"},
           {"device: cuda}\nmatrix: {seed: [1]}\ninclude: [{gpu: h100, batch_size: x}]", "4:35: batch_size must be"},
           {"gpu: h100, device: cude}", "2:49: device 'cude'"},
           {"precision: bf61, scaling: delayed}", "2:41: precision 'bf61'"},
           {"precision: fp61, state_precision: bf16, primary_weights: quantized}", "2:41: precision 'fp61'"},
           {"ranks: 2, communicator: glo}", "2:54: communicator 'glo'"},
           {"ranks: 2, gpu: h10, communicator: nccl, device: meta}", "2:45: gpu 'h10'"},
           {"learning_rate: fast, learning_rate_min: 1e-3}", "2:45: learning_rate must be"},
           {"seq_length: long, batch_size: 1048576, grad_accumulation: 4096, ranks: 65536, communicator: virtual}",
            "2:42: seq_length must be"}}) {
    EXPECT_THAT(only_fault(model + text), StartsWith("s.yaml:" + fault)) << text;
  }
  EXPECT_THAT(only_fault("defaults: {family: stak, layers: 2, hidden: 64, heads: 4, ffn: 128, vocab: 0}"),
              StartsWith("s.yaml:2:20: family 'stak'"));
  // A fault that follows from no other is reported beside it.
  EXPECT_THAT(Refusal(model + "precision: bf61, device: cpu, gpu: h100}"),
              AllOf(HasSubstr("s.yaml:2:41: precision 'bf61'"), HasSubstr("s.yaml:2:65: gpu: h100 goes with")));
}

TEST(Sweep, ManyFaultsAreCutShort) {
  std::string text = "defaults:\n";
  for (int i = 0; i < 70; ++i) text += "  unknown_field_number_" + std::to_string(i) + ": 1\n";
  EXPECT_THAT(Refusal(text), AllOf(StartsWith("s.yaml:3:3:"), HasSubstr("\nand 20 more")));
}

TEST(Sweep, AMissingFileIsNamed) {
  try {
    LoadSweep("/nonexistent/sweep.yaml");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
    EXPECT_EQ(e.message(), "there is no file /nonexistent/sweep.yaml");
  }
}

TEST(Yaml, FaultsHavePlaces) {
  EXPECT_THAT(RawRefusal("name: [a\nb: c"), StartsWith("s.yaml:"));
  EXPECT_THAT(RawRefusal("name: s\nmatrix: *none"), AllOf(HasSubstr("s.yaml:2:"), HasSubstr("not YAML")));
  EXPECT_THAT(RawRefusal("name: *nowhere"), HasSubstr("not YAML"));
  EXPECT_THAT(RawRefusal(""), HasSubstr("s.yaml:1:1: the file is empty"));
  EXPECT_THAT(RawRefusal("# only a comment\n"), HasSubstr("s.yaml:1:1:"));
  EXPECT_THAT(RawRefusal("name: a\n---\nname: b"), HasSubstr("a second document begins here"));
  EXPECT_THAT(RawRefusal("name: !!binary aGk="), HasSubstr("the tag tag:yaml.org,2002:binary is not known here"));
  EXPECT_THAT(RawRefusal(std::string("name: \0x", 8)), Not(HasSubstr("accepted")));
}

TEST(Yaml, HostileFilesEndQuickly) {
  std::string bomb = "name: s\na0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last;
    for (int j = 0; j < 8; ++j) bomb += ", " + last;
    bomb += "]\n";
  }
  EXPECT_THAT(RawRefusal(bomb),
              HasSubstr("with this the file holds more than 2000000 values, its aliases written out"));
  EXPECT_THAT(RawRefusal("name: &a [*a]"), HasSubstr("this alias stands for something that contains it"));
  EXPECT_THAT(RawRefusal("name: " + std::string(100'000, '[')), HasSubstr("s.yaml:1:"));
}

TEST(Yaml, ScalarsFollowTheCoreSchema) {
  EXPECT_THAT(AxisTexts("batch_size", "[8, 0x10, 0o17, 1e3, +5, 8.0]"), ElementsAre("8", "16", "15", "1000", "5", "8"));
  EXPECT_THAT(AxisTexts("learning_rate", "[1e-4, 1E-4, .5, 1., +0.25, 2]"),
              ElementsAre("0.0001", "0.0001", "0.5", "1", "0.25", "2"));
  EXPECT_THAT(AxisTexts("tied_head", "[true, False, TRUE]"), ElementsAre("true", "false", "true"));
  EXPECT_THAT(AxisTexts("data", "['8', !!str 8, \"true\", yes, 1.2.3, 0x, -, 1_000]"),
              ElementsAre("8", "8", "true", "yes", "1.2.3", "0x", "-", "1_000"));
}

TEST(Yaml, AnchorsAndAliasesAreValues) {
  const Sweep sweep = Parse("matrix: {batch_size: &sizes [1, 2]}\nzip: {seed: *sizes, steps: *sizes}");
  EXPECT_EQ(sweep.groups.size(), 2U);
  EXPECT_EQ(sweep.groups[1].size(), 2U);
  EXPECT_THAT(Refusal("defaults: {<<: {seed: 1}}"), HasSubstr("unknown field '<<'"));
}

TEST(Yaml, WindowsLineEndsAndByteOrderMarks) {
  const Sweep sweep = ParseSweep("\xef\xbb\xbfname: s\r\nmatrix:\r\n  batch_size: [1, 2]\r\n", "s.yaml");
  EXPECT_EQ(sweep.name, "s");
  EXPECT_EQ(sweep.groups.at(0).at(0).size(), 2U);
}

TEST(Sweep, CheckpointFilesAreSettingsOfEveryPoint) {
  for (const char* text :
       {"defaults: {model: llama-10m, checkpoint: {dir: ck, every_steps: 5}}\nmatrix: {seed: [1, 2]}",
        "defaults: {model: llama-10m}\ncheckpoint: {dir: ck, every_steps: 5}\nmatrix: {seed: [1, 2]}"}) {
    const auto points = Expand(Parse(text));
    const auto plain = Expand(Parse("defaults: {model: llama-10m}\nmatrix: {seed: [1, 2]}"));
    ASSERT_EQ(points.size(), 2U);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(points[i].spec.checkpoint_dir, "ck");
      EXPECT_EQ(points[i].spec.checkpoint_every_steps, 5);
      EXPECT_EQ(points[i].id, plain[i].id);
    }
  }
}

TEST(Sweep, TheFirstWeightsAreAPartOfEveryPoint) {
  const auto points = Expand(Parse("defaults: {model: llama-10m}\ninit: {from: some/folder}\nmatrix: {seed: [1, 2]}"));
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[1].spec.init_from, "some/folder");
  const auto of = [](const std::string& more) {
    return Expand(Parse("defaults: {model: llama-10m}\n" + more)).at(0).id;
  };
  EXPECT_NE(of("init: {from: some/folder}"), of(""));
  EXPECT_EQ(of("init: {from: seed}"), of(""));
  EXPECT_EQ(of("matrix: {init_from: [some/folder, seed]}"), of("init: {from: some/folder}"));
  EXPECT_THAT(Refusal("init: some/folder"),
              HasSubstr("s.yaml:2:7: init is a mapping: {from: seed}, or {from: a folder of weights}, not"));
  EXPECT_THAT(Refusal("init: {form: a}"), HasSubstr("did you mean 'from'?"));
  EXPECT_THAT(Refusal("init: {from: a}\ndefaults: {init_from: b}"), HasSubstr("init_from is given in defaults too"));
  EXPECT_THAT(Refusal("defaults: {model: stack-1b, init_from: a}"),
              HasSubstr("stack's first weights come from the seed alone"));
}

TEST(Sweep, ThrottledMeasurementsAreRefusedByASettingOfEveryPoint) {
  const auto points = Expand(Parse("defaults: {model: llama-10m}\nmeasure: {steps: 3, refuse_throttled: true}"));
  ASSERT_EQ(points.size(), 1U);
  EXPECT_TRUE(points[0].spec.refuse_throttled);
  EXPECT_EQ(points[0].spec.steps, 3);
  EXPECT_EQ(points[0].id, Expand(Parse("defaults: {model: llama-10m}\nmeasure: {steps: 3}")).at(0).id);
  EXPECT_THAT(Refusal("measure: {refuse_throttled: sometimes}"), HasSubstr("measure.refuse_throttled"));
  EXPECT_THAT(Refusal("measure: {refuse_throtled: true}"), HasSubstr("did you mean 'refuse_throttled'?"));
  EXPECT_THAT(Refusal("matrix: {refuse_throttled: [true, false]}"), HasSubstr("unknown field 'refuse_throttled'"));
}

TEST(Sweep, WrongCheckpointSettingsAreRefusedAtTheirPlace) {
  EXPECT_THAT(Refusal("defaults: {model: llama-10m, checkpoint: full}"),
              AllOf(HasSubstr("s.yaml:2:42: checkpoint is a mapping of dir, every_steps and keep, not"),
                    HasSubstr("activation checkpointing is the field checkpointing")));
  EXPECT_THAT(Refusal("checkpoint: {dri: ck}"), HasSubstr("did you mean 'dir'?"));
  EXPECT_THAT(Refusal("checkpoint: {dir: ck, keep: 0}"), HasSubstr("checkpoint.keep is 0, and must be between 1"));
  EXPECT_THAT(Refusal("checkpoint: {dir: a}\ndefaults: {checkpoint: {dir: b}}"),
              HasSubstr("checkpoint.dir is given in defaults too"));
  // A setting that changes nothing about a point is no axis.
  EXPECT_THAT(Refusal("matrix: {checkpoint: {dir: [a, b]}}"), HasSubstr("unknown field 'checkpoint'"));
  EXPECT_THAT(Refusal("matrix: {checkpoint.dir: [a, b]}"), HasSubstr("unknown field 'checkpoint.dir'"));
}

TEST(Sweep, TheTimeToSaveIsADuration) {
  EXPECT_EQ(Parse("launch: {save_time: 90s}").launch.save_time_s, 90);
  EXPECT_EQ(Parse("launch: {launcher_timeout: 2h}").launch.launcher_timeout_s, 7200);
  EXPECT_EQ(Parse("launch: {cpus: 1}").launch.launcher_timeout_s, 900);
  EXPECT_THAT(Refusal("launch: {launcher_timeout: soon}"),
              HasSubstr("launcher_timeout is a duration such as 15m or 2h"));
  EXPECT_EQ(Parse("launch: {save_time: 2m}").launch.save_time_s, 120);
  EXPECT_THAT(Refusal("launch: {save_time: soon}"), HasSubstr("save_time is a duration"));
  EXPECT_EQ(Parse("launch: {meet_limit: 20m}").launch.meet_limit_s, 1200);
  EXPECT_EQ(Parse("launch: {}").launch.meet_limit_s, 0);
  EXPECT_THAT(Refusal("launch: {meet_limit: soon}"), HasSubstr("meet_limit is a duration"));
  const char* two = "start_limit, the time that a job may take to start, belongs under kubernetes:; meet_limit is the ";
  EXPECT_THAT(Refusal("launch: {start_limit: 20m}"), HasSubstr(two));
  EXPECT_THAT(Refusal("launch: {rules: [{when: {ranks: 2}, set: {start_limit: 20m}}]}"), HasSubstr(two));
  EXPECT_FALSE(Parse("launch: {}").launch.keep_logs);
  EXPECT_TRUE(Parse("launch: {keep_logs: true}").launch.keep_logs);
  EXPECT_THAT(Refusal("launch: {keep_logs: maybe}"), HasSubstr("keep_logs is true or false, not \"maybe\""));
}

TEST(Sweep, ComparesTwoFields) {
  const auto batches = [](const std::string& exclude) {
    std::vector<int64_t> left;
    for (const Point& point :
         Expand(Parse("defaults: {model: llama-10m, layers: 4, seq_length: 64}\nmatrix: {batch_size: 1..6, "
                      "grad_accumulation: [4]}\nexclude: [{batch_size: \"" +
                      exclude + "\"}]\n"))) {
      left.push_back(point.spec.batch_size);
    }
    return left;
  };
  EXPECT_THAT(batches(">grad_accumulation"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(batches("<= grad_accumulation"), ElementsAre(5, 6));
  EXPECT_THAT(batches("!=grad_accumulation"), ElementsAre(4));
  EXPECT_THAT(batches("<layers"), ElementsAre(4, 5, 6));  // not an axis
  EXPECT_THAT(batches("multiple of 3"), ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(batches("not multiple of 3"), ElementsAre(3, 6));
  EXPECT_THAT(batches("not multiple of grad_accumulation"), ElementsAre(4));
  const auto refusal = [](const std::string& condition) {
    return Refusal("defaults: {model: llama-10m}\nmatrix: {batch_size: [1, 2]}\nexclude: [" + condition + "]\n");
  };
  EXPECT_THAT(refusal("{batch_size: \">rank\"}"), StartsWith("s.yaml:4:24: batch_size: the comparison '>rank' needs a "
                                                             "number, or a field of numbers, did you mean 'ranks'?"));
  EXPECT_THAT(refusal("{batch_size: \">precision\"}"), HasSubstr("a field of numbers"));
  EXPECT_THAT(refusal("{learning_rate: multiple of 2}"), HasSubstr("needs integers"));
  EXPECT_THAT(refusal("{batch_size: multiple of 0}"), HasSubstr("needs integers"));
}

}  // namespace
}  // namespace ridgeline::sweep
