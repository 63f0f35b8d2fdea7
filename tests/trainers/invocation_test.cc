// How a definition's trainer is started, and which points it says it can run.
#include "trainers/invocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "trainers/definition.h"
#include "yaml/yaml.h"

namespace ridgeline::trainers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

constexpr const char* kMine = R"(name: mine
about: one line
version: "1.0"
tested: log
result: patterns
metrics: [{name: step_time, regex: 'took (.*) ms', unit: ms}]
)";

Trainer ParseMine(const std::string& more) { return ParseTrainer(kMine + more, "some/mine.yaml"); }

std::string RefusalOfMine(const std::string& more) {
  try {
    ParseMine(more);
  } catch (const Error& e) {
    return e.message();
  }
  ADD_FAILURE() << "was taken:\n" << more;
  return {};
}

RunSpec Spec(const Json& values) {
  std::vector<Problem> problems;
  RunSpec spec = BuildSpec(values, problems);
  for (const Problem& problem : problems) ADD_FAILURE() << problem.message;
  return spec;
}

std::vector<std::string> WhyNot(const std::string& more, const Json& values) {
  RunSpec spec = Spec(values);
  const Trainer trainer = ParseMine(more);
  CanonicalizeOwn(*trainer.invocation, spec);
  std::vector<std::string> messages;
  for (const Problem& problem : WhyRefused("mine", *trainer.invocation, spec)) messages.push_back(problem.message);
  return messages;
}

TEST(Invocation, IsReadWholeAndSaysWhatIsStarted) {
  const Trainer trainer = ParseMine(R"(
command: [torchrun, '--nproc_per_node={{ranks_per_node}}', '--node_rank={{node_rank}}', '{{env.DIR}}/train.py',
          --lr, '{{learning_rate}}', --iters, '{{total_steps}}', --gbs, '{{global_batch_size}}', 8, '{{if flash}}--flash{{end}}']
processes: torchrun
env: {MODE: '{{checkpointing}}'}
files:
  config.toml: |
    steps = {{total_steps}}
    folder = "{{output_dir}}/logs"
    name = {{kernel}}
fields:
  flash: {type: boolean, default: true, help: whether}
  kernel: {type: text, choices: [fast, slow], default: fast}
  buckets: {type: integer, default: 4, min: 1, max: 8}
  share: {type: number, default: 0.5}
supports: {model: any}
resume: ['--resume={{checkpoint_dir}}']
)");
  ASSERT_TRUE(trainer.invocation.has_value());
  RunSpec spec = Spec({{"model", "llama-10m"}, {"batch_size", 4}, {"ranks", 8}});
  spec.own = {{"flash", false}, {"elsewhere", int64_t{1}}};
  CanonicalizeOwn(*trainer.invocation, spec);
  EXPECT_THAT(spec.own, ElementsAre(Pair("buckets", FieldValue(int64_t{4})), Pair("flash", FieldValue(false)),
                                    Pair("kernel", FieldValue("fast")), Pair("share", FieldValue(0.5))));
  ProcessPlace place;
  place.ranks_per_node = 4;
  place.node_rank = 1;
  place.output_dir = "/out \"x\"";
  place.environment = {{"DIR", "/opt"}};
  Invoked invoked = Invoke(*trainer.invocation, spec, place);
  EXPECT_THAT(invoked.argv, ElementsAre("torchrun", "--nproc_per_node=4", "--node_rank=1", "/opt/train.py", "--lr",
                                        "0.0003", "--iters", "7", "--gbs", "32", "8"));
  EXPECT_THAT(invoked.environment, ElementsAre(Pair("MODE", "none")));
  EXPECT_EQ(invoked.files.at("config.toml"), "steps = 7\nfolder = \"/out \\\"x\\\"/logs\"\nname = \"fast\"\n");
  place.resumes = true;
  place.checkpoint_dir = "/ckpt";
  EXPECT_EQ(Invoke(*trainer.invocation, spec, place).argv.back(), "--resume=/ckpt");
  EXPECT_EQ(Invoke(*trainer.invocation, spec, place).directory, "");
  place.environment.clear();
  EXPECT_THROW(Invoke(*trainer.invocation, spec, place), Error);
}

TEST(Invocation, ItMayRunInAFolderOfItsOwn) {
  const Trainer trainer = ParseMine("command: [x, '{{layers}}']\ndirectory: '{{env.DIR}}/src'\n");
  ProcessPlace place;
  place.environment = {{"DIR", "/opt"}};
  EXPECT_EQ(Invoke(*trainer.invocation, Spec({{"model", "llama-10m"}}), place).directory, "/opt/src");
  EXPECT_THAT(RefusalOfMine("directory: x\n"), HasSubstr("directory goes with a command, and there is none"));
  EXPECT_THAT(RefusalOfMine("command: [x]\ndirectory: '{{dir}}'\n"), HasSubstr("mine.yaml:8:12: there is no 'dir'"));
}

TEST(Invocation, OwnFieldsAreEncodedWithTheirTypes) {
  RunSpec spec = Spec({{"model", "llama-10m"}, {"trainer", "mine"}});
  spec.own = {{"a", true}, {"b", int64_t{2}}, {"c", 2.0}, {"d", "x\n"}};
  const std::string text = EncodeSpec(spec);
  EXPECT_THAT(text, HasSubstr(R"("own":{"a":true,"b":2,"c":2.0,"d":"x\n"})"));
  const RunSpec back = DecodeSpec(ParseJson(text, "spec"), "spec");
  EXPECT_EQ(back.own, spec.own);
  EXPECT_EQ(PointId(back), PointId(spec));
  RunSpec ours = Spec({{"model", "llama-10m"}});
  EXPECT_EQ(EncodeSpec(ours).find("own"), std::string::npos);
  EXPECT_EQ(EncodeSpec(ours).find("trainer"), std::string::npos) << "ids of points that were before are as they were";
}

TEST(Invocation, MistakesAreSaidAtTheirPlace) {
  EXPECT_THAT(RefusalOfMine("command: [x, '{{layer}}']\n"),
              HasSubstr("mine.yaml:7:14: there is no 'layer', did you mean 'layers'?"));
  EXPECT_THAT(RefusalOfMine("command: []\n"), HasSubstr("command is a list of 1 to"));
  EXPECT_THAT(RefusalOfMine("command: run it\n"), HasSubstr("command is a list"));
  EXPECT_THAT(RefusalOfMine("command: [x, [y]]\n"), HasSubstr("an argument of command is text"));
  EXPECT_THAT(RefusalOfMine("env: {A: b}\n"), HasSubstr("env goes with a command, and there is none"));
  EXPECT_THAT(RefusalOfMine("command: [x]\nprocesses: mine\n"), HasSubstr("processes is ours, torchrun, srun or one"));
  EXPECT_THAT(RefusalOfMine("command: [x]\nenv: {'A=B': c}\n"), HasSubstr("a variable's name has no '='"));
  EXPECT_THAT(RefusalOfMine("command: [x]\nfiles: {../a.toml: b}\n"), HasSubstr("cannot be a file here"));
  EXPECT_THAT(RefusalOfMine("command: [x]\nfiles: {a.sh: b}\n"), HasSubstr("which decides how values are quoted"));
  EXPECT_THAT(RefusalOfMine("command: [x]\nsupports: {precisions: fp32}\n"), HasSubstr("did you mean 'precision'"));
  EXPECT_THAT(RefusalOfMine("command: [x]\nsupports: {precision: fp64}\n"), HasSubstr("fp64"));
  EXPECT_THAT(RefusalOfMine("command: [x]\nfields: {layers: {type: integer, default: 1}}\n"),
              HasSubstr("has a meaning already"));
  EXPECT_THAT(RefusalOfMine("command: [x]\nfields: {Flash: {default: a}}\n"), HasSubstr("small letters"));
  EXPECT_THAT(RefusalOfMine("command: [x]\nfields: {flash: {type: boolean}}\n"), HasSubstr("flash has no default"));
  // A use of a field with an error is not reported as a second error.
  for (const char* field :
       {"flash: {type: bool, default: a}", "flash: 5", "flash: {type: boolean}", "Flash: {default: a}"}) {
    const bool is_name = field[0] == 'f';
    const std::string refusal =
        RefusalOfMine(fmt::format("command: [x, '{{{{{0}}}}}', '{{{{if {0}}}}}y{{{{end}}}}']\nfields: {{{1}}}\n",
                                  is_name ? "flash" : "Flash", field));
    EXPECT_THAT(refusal, Not(HasSubstr("\n"))) << "one fault has one line";
  }
  EXPECT_THAT(RefusalOfMine("command: [x]\nfields: {flash: {type: boolean, default: 3}}\n"),
              HasSubstr("flash must be"));
  EXPECT_THAT(RefusalOfMine("command: [x]\nfields: {n: {type: integer, default: 9, max: 8}}\n"),
              HasSubstr("between 0 and 8"));
  EXPECT_THAT(RefusalOfMine("command: [x]\nfields: {k: {choices: [a, b], default: c}}\n"),
              HasSubstr("not one of a, b"));
  EXPECT_THAT(RefusalOfMine("command: [x]\nfile: y.json\n"), HasSubstr("with `result: file` and a command"));
}

TEST(Invocation, AVariableThatComesOutEmptyIsLeftOut) {
  const Trainer trainer = ParseMine("command: [x]\nenv: {A: '{{if layers == 3}}1{{end}}', B: '', C: '{{layers}}'}\n");
  const Invoked invoked = Invoke(*trainer.invocation, Spec({{"model", "gpt-124m"}}), {});
  EXPECT_EQ(invoked.environment, (std::map<std::string, std::string>{{"B", ""}, {"C", "12"}}));
}

TEST(Invocation, APreviewHasPlaceholdersForValuesThatOnlyTheNodeKnows) {
  const Trainer trainer = ParseMine("command: [bash, -c, 'x {{env.SURELY_NOT_SET}} {{output_dir}} {{layers}}']\n");
  ProcessPlace place;
  place.output_dir = Placeholder("output_dir");
  place.is_shown = true;
  const RunSpec spec = Spec({{"model", "gpt-124m"}});
  EXPECT_EQ(Invoke(*trainer.invocation, spec, place).argv.back(), "x <SURELY_NOT_SET> <OUTPUT_DIR> 12");
  place.is_shown = false;
  EXPECT_THROW(Invoke(*trainer.invocation, spec, place), Error);
}

TEST(Invocation, AShellsTextTakesPlainValuesAlone) {
  const std::string text = "command: [bash, -lc, 'source env.sh && exec ./train --d={{data}} --n={{layers}}']\n";
  EXPECT_THAT(WhyNot(text, {{"model", "gpt-124m"}, {"data", "/data/a-1.txt"}}), IsEmpty());
  EXPECT_THAT(WhyNot(text, {{"model", "gpt-124m"}, {"data", "/data/$(touch x)"}}),
              ElementsAre(HasSubstr("data is '/data/$(touch x)', which a shell would change")));
  const std::string argument = "command: [conda, run, bash, -ec, './train $1 --n={{layers}}', x, '{{data}}']\n";
  EXPECT_THAT(WhyNot(argument, {{"model", "gpt-124m"}, {"data", "/data/$(touch x)"}}), IsEmpty());
  EXPECT_THAT(RefusalOfMine("command: [source, env.sh, '&&', ./train, '{{layers}}']\n"),
              HasSubstr("'source' is a shell's word: write [bash, -lc, TEXT]"));
}

TEST(Invocation, MistakesInHowRanksAreSplitAreSaidAtTheirPlace) {
  const auto refused = [](const std::string& more) { return RefusalOfMine("command: [x]\n" + more); };
  EXPECT_THAT(refused("data_parallel: '{{rank}} / 2'\n"),
              HasSubstr("mine.yaml:8:16: there is no field 'rank', did you mean 'ranks'?"));
  EXPECT_THAT(refused("data_parallel: '{{nodes}}'\n"), HasSubstr("there is no field 'nodes'"));
  EXPECT_THAT(refused("data_parallel: '{{ranks}} / '\n"), HasSubstr("data_parallel: it ends where a value is missing"));
  EXPECT_THAT(refused("data_parallel: '{{ranks}} == 1'\n"), HasSubstr("data_parallel is a number, such as"));
  EXPECT_THAT(refused("data_parallel: {{ranks}}\n"), HasSubstr("mapping"));
  EXPECT_THAT(refused("require: '{{ranks}} == 1'\n"), HasSubstr("require is a list of 1 to"));
  EXPECT_THAT(refused("require: ['{{ranks}}']\n"), HasSubstr("a requirement is a condition, such as"));
  EXPECT_THAT(refused("require: [{else: x}]\n"), HasSubstr("a requirement has `if`"));
  EXPECT_THAT(refused("require: [{if: '{{ranks}} == 1', then: x}]\n"),
              HasSubstr("unknown part of a requirement 'then'"));
  EXPECT_THAT(RefusalOfMine("data_parallel: '1'\n"), HasSubstr("data_parallel goes with a command"));
  for (const char* name : {"tensor_parallel", "sequence_parallel", "data_parallel"}) {
    EXPECT_THAT(refused(fmt::format("fields: {{{}: {{type: integer, default: 1}}}}\n", name)),
                HasSubstr("has a meaning already"));
  }
}

TEST(Invocation, BatchesAreOfDataParallelRanks) {
  const std::string plain =
      "command: [x, '{{layers}}', '{{tensor_parallel}}', '{{pipeline_parallel}}', '{{data_parallel}}', "
      "'{{local_batch_size}}', '{{global_batch_size}}', '{{global_micro_batches}}', '{{tokens_per_step}}', "
      "'{{world_size}}']\n";
  RunSpec spec = Spec({{"model", "llama-10m"},
                       {"batch_size", 4},
                       {"grad_accumulation", 3},
                       {"seq_length", 128},
                       {"ranks", 16},
                       {"tensor_parallel", 2},
                       {"pipeline_parallel", 2}});
  const auto started = [&](const std::string& more) {
    return Invoke(*ParseMine(plain + more).invocation, spec, {}).argv;
  };
  EXPECT_THAT(started(""), ElementsAre("x", "8", "2", "2", "4", "12", "48", "12", "6144", "16"));
  const std::string half = "data_parallel: '{{ranks}} / 2'\n";
  EXPECT_THAT(started(half), ElementsAre("x", "8", "2", "2", "8", "12", "96", "24", "12288", "16"));
  EXPECT_EQ(TokensAStep(ParseMine(plain + half), spec), 12288);
  const auto per_rank = [&](int64_t batch) {
    spec.batch_size = batch;
    return Invoke(*ParseMine("command: [x, '{{layers}}', '{{per_rank_batch_size | float}}', '{{tensor_parallel}}', "
                             "'{{pipeline_parallel}}', '{{grad_accumulation}}', '{{seq_length}}']\n")
                       .invocation,
                  spec, {})
        .argv[2];
  };
  EXPECT_EQ(per_rank(4), "1.0");
  EXPECT_EQ(per_rank(1), "0.25") << "four ranks share a sequence";
  spec.ranks = 4;
  EXPECT_THROW(started("data_parallel: '{{ranks}} - 4'\n"), Error) << "of none";
  EXPECT_THROW(started("data_parallel: '{{ranks}} * 2'\n"), Error) << "more than there are";
}

TEST(Invocation, SequenceParallelIsNotAskedForWhereItGoesWithTensorParallel) {
  const std::string command = "command: [x, '{{layers}}', '{{tensor_parallel}}']\n";
  const auto why = [&](const std::string& more, const Json& values) {
    Json all = {{"model", "llama-10m"}, {"ranks", 4}, {"tensor_parallel", 2}};
    all.update(values);
    return WhyNot(command + more, all);
  };
  EXPECT_THAT(why("", Json::object()), IsEmpty());
  EXPECT_THAT(why("", {{"sequence_parallel", false}}), ElementsAre(HasSubstr("would ignore sequence_parallel: false")));
  EXPECT_THAT(why("supports: {sequence_parallel: false}\n", {{"sequence_parallel", false}}), IsEmpty());
  EXPECT_THAT(why("supports: {sequence_parallel: false}\n", Json::object()),
              ElementsAre("trainer mine takes sequence_parallel: false, not true"));
}

TEST(Invocation, APointThatItCannotRunIsRefusedWithTheReason) {
  const Json plain = {{"model", "gpt-124m"}};
  const std::string all = "command: [x, '{{layers}}', '{{precision | map: fp32=a, bf16=b}}']\n";
  EXPECT_THAT(WhyNot(all + "processes: one\n", plain), IsEmpty());
  EXPECT_THAT(WhyNot(all + "supports: {family: llama}\n", plain),
              ElementsAre("trainer mine takes family: llama, not gpt"));
  EXPECT_THAT(WhyNot(all, {{"model", "gpt-124m"}, {"precision", "fp16"}}),
              ElementsAre("trainer mine: precision is fp16, and it takes fp32, bf16"));
  EXPECT_THAT(WhyNot(all, {{"model", "gpt-124m"}, {"dropout", 0.25}}),
              ElementsAre(HasSubstr("trainer mine would ignore dropout: 0.25. Pass dropout in its command, or add "
                                    "`supports: {dropout: [0.25]}`")));
  const std::string no_precision = "command: [x, '{{layers}}']\n";
  EXPECT_THAT(WhyNot(no_precision, plain), IsEmpty());
  EXPECT_THAT(WhyNot(no_precision, {{"model", "gpt-124m"}, {"precision", "fp8"}}),
              ElementsAre(HasSubstr("trainer mine would ignore precision: fp8. Pass precision in its command")))
      << "else two precisions would be one run";
  EXPECT_THAT(WhyNot(all + "supports: {dropout: any}\n", {{"model", "gpt-124m"}, {"dropout", 0.25}}), IsEmpty());
  EXPECT_THAT(WhyNot(all + "processes: one\n", {{"model", "gpt-124m"}, {"ranks", 2}}),
              ElementsAre(HasSubstr("trainer mine would ignore ranks: 2. Pass ranks in its command")));
  EXPECT_THAT(WhyNot(all, {{"model", "gpt-124m"}, {"ranks", 2}}), IsEmpty()) << "whose ranks we start";
  EXPECT_THAT(WhyNot("command: [x]\n", plain), ElementsAre(HasSubstr("does not say which model it trains")));
  EXPECT_THAT(WhyNot(all + "supports: {device: cuda}\n", plain),
              ElementsAre("trainer mine takes device: cuda, not cpu"));
}

RunSpec NamedSpec(const Json& more) {
  Json values = {{"model", "my/model"}, {"trainer", "mine"}};
  if (!more.is_null()) values.update(more);
  return Spec(values);
}

TEST(Invocation, UnknownPropertiesOfAModelHaveNoValue) {
  const auto why_not = [](const std::string& more, const Json& values) {
    const Trainer trainer = ParseMine(more);
    std::vector<Problem> problems = WhyRefused("mine", *trainer.invocation, NamedSpec(values));
    if (problems.empty()) return std::string();
    EXPECT_EQ(problems.size(), 1U);
    EXPECT_EQ(problems.front().field, "model");
    return problems.front().message;
  };
  EXPECT_EQ(why_not("command: [x, '{{model}}']\n", {}), "");
  EXPECT_EQ(
      why_not("command: [x, '{{layers}}', '{{hidden}}', '{{rope_theta}}', '{{layers}}']\n", {}),
      "trainer mine needs layers, hidden, rope_theta, which is not known for the model my/model: give them beside "
      "`model`, or name a preset");
  EXPECT_THAT(why_not("command: [x, '{{layers}}', '{{hidden}}']\n", {{"layers", 4}}), HasSubstr("needs hidden, which"));
  EXPECT_THAT(why_not("command: [x, '{{model}}', '{{parameters}}']\n", {}), HasSubstr("needs parameters, which"));
  EXPECT_EQ(why_not("command: [x, '{{model}}', '{{parameters}}']\n", {{"parameters", 5}}), "");
  // A variable with a default, or one that is used only if it exists, refuses no point.
  EXPECT_EQ(why_not("command: [x, '{{model}}', '{{layers | default: 4}}', '{{if heads}}{{heads}}{{end}}', "
                    "'{{tied_head}}', '{{if experts != 0}}{{expert_ffn}}{{end}}']\n",
                    {}),
            "");
  EXPECT_THAT(WhyNot("command: [x, '{{layers}}']\nsupports: {family: [llama, gpt]}\n",
                     {{"model", "x"}, {"layers", 2}, {"trainer", "mine"}}),
              ElementsAre(HasSubstr("takes family: llama, gpt, not other: the model x is not a preset")));
  const Trainer counts = ParseMine("command: [x, '{{model}}', '{{parameters}}', '{{active_parameters}}']\n");
  EXPECT_THAT(Invoke(*counts.invocation, Spec({{"model", "mixtral-8x7b"}, {"trainer", "mine"}}), {}).argv,
              ElementsAre("x", "mixtral-8x7b", "46702792704", "12879925248"));
}

TEST(Invocation, AModelsOtherNameMeansTheSame) {
  const Trainer trainer = ParseMine(
      "command: [x, '{{model | map: llama3-8b=8B, llama3.2-1b=1B}}', '{{if model == llama3.1-8b}}yes{{end}}']\n"
      "supports: {model: [llama3-8b, llama-1b]}\n");
  const RunSpec spec = Spec({{"model", "llama-8b"}});
  EXPECT_THAT(WhyRefused("mine", *trainer.invocation, spec), IsEmpty());
  EXPECT_THAT(Invoke(*trainer.invocation, spec, {}).argv, ElementsAre("x", "8B", "yes"));
  EXPECT_THAT(Invoke(*trainer.invocation, Spec({{"model", "llama-1b"}}), {}).argv, ElementsAre("x", "1B"));
}

TEST(Invocation, AMixtureOfExpertsNeedsATrainerThatIsToldOfThem) {
  const Json mixtral = {{"model", "mixtral-8x7b"}, {"trainer", "mine"}};
  EXPECT_THAT(WhyNot("command: [x, '{{layers}}']\n", mixtral),
              ElementsAre("trainer mine would ignore that the model mixtral-8x7b has 8 experts a layer: its definition "
                          "neither uses nor supports experts"));
  EXPECT_THAT(WhyNot("command: [x, '{{layers}}']\nsupports: {experts: any}\n", mixtral), IsEmpty());
  EXPECT_THAT(WhyNot("command: [x, '{{model}}']\n", mixtral), IsEmpty());
}

}  // namespace
}  // namespace ridgeline::trainers
