// Definitions of trainers: those accepted, and those refused with their line.
#include "trainers/definition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "run/result.h"

namespace ridgeline::trainers {
namespace {

using ::testing::HasSubstr;

constexpr const char* kHead = "name: mine\nabout: one line\nversion: \"1.0\"\ntested: log\nresult: patterns\n";

Trainer Parse(const std::string& text) { return ParseTrainer(text, "some/mine.yaml"); }

std::string Refusal(const std::string& text) {
  try {
    Parse(text);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
    EXPECT_EQ(e.hint(), "docs/trainer-definitions.md describes definitions");
    return e.message();
  }
  ADD_FAILURE() << "was taken:\n" << text;
  return {};
}

// The error of a definition with this metric, or of a correct one followed by these lines.
std::string MetricRefusal(const std::string& metric) {
  return Refusal(std::string(kHead) + "metrics: [" + metric + "]\n");
}
std::string MoreRefusal(const std::string& more) {
  return Refusal(std::string(kHead) + "metrics: [{name: loss, regex: 'loss (.*)'}]\n" + more);
}

TEST(Definition, IsReadWhole) {
  const Trainer trainer = Parse(std::string(kHead) + R"(metrics:
  - {name: step_time, regex: 'iter (?P<step>\d+): (?P<value>[\d.]+)ms', unit: ms, take: series}
  - {name: loss, regex: 'loss (\S+)'}
ends:
  - {regex: 'no CUDA', end: infrastructure, reason: node, hint: look}
  - {regex: 'too large', end: oom_device}
exit_codes: {137: oom_host, 3: {end: infrastructure, reason: storage, hint: full}}
)");
  EXPECT_EQ(trainer.name, "mine");
  EXPECT_EQ(trainer.about, "one line");
  EXPECT_EQ(trainer.version, "1.0");
  EXPECT_EQ(trainer.tested, "log");
  EXPECT_EQ(trainer.result, Trainer::Result::kPatterns);
  ASSERT_EQ(trainer.metrics.size(), 2U);
  EXPECT_EQ(trainer.metrics[0].figure->name, "step_time");
  EXPECT_EQ(trainer.metrics[0].unit->name, "ms");
  EXPECT_EQ(trainer.metrics[0].take, Take::kSeries);
  EXPECT_EQ(trainer.metrics[0].pattern->Find("iter 7: 3.5ms")->step, "7");
  EXPECT_EQ(trainer.metrics[0].pattern->Find("iter 7: 3.5ms")->value, "3.5");
  EXPECT_EQ(trainer.metrics[1].take, Take::kLast);
  ASSERT_EQ(trainer.ends.size(), 2U);
  EXPECT_EQ(EndName(trainer.ends[0].rule.end), "infrastructure (node)");
  EXPECT_EQ(trainer.ends[0].rule.hint, "look");
  EXPECT_EQ(EndName(trainer.exit_codes.at(137).end), "oom_host");
  EXPECT_EQ(EndName(trainer.exit_codes.at(3).end), "infrastructure (storage)");
}

TEST(Definition, ADefinitionWithAResultFileHasPointers) {
  const Trainer trainer = Parse(
      "name: mine\nabout: a\nversion: v\ntested: log\nresult: file\nmetrics: [{name: loss, json: /train/loss}]\n");
  EXPECT_EQ(trainer.result, Trainer::Result::kFile);
  EXPECT_EQ(trainer.metrics.at(0).pointer, "/train/loss");
}

TEST(Definition, NearestKeysAndNamesAreSaid) {
  EXPECT_THAT(MoreRefusal("ednds: []\n"), HasSubstr("some/mine.yaml:7:1: unknown key 'ednds', did you mean 'ends'?"));
  EXPECT_THAT(MetricRefusal("{name: los, regex: '(.)'}"), HasSubstr("unknown metric 'los', did you mean 'loss'?"));
  EXPECT_THAT(MetricRefusal("{name: loss, regexp: '(.)'}"), HasSubstr("'regexp', did you mean 'regex'?"));
  EXPECT_THAT(MetricRefusal("{name: step_time, regex: '(.)', unit: sms}"), HasSubstr("step_time has no unit 'sms'"));
  EXPECT_THAT(MetricRefusal("{name: loss, regex: '(.)', take: lst}"),
              HasSubstr("unknown take 'lst', did you mean 'last'"));
  EXPECT_THAT(MoreRefusal("ends: [{regex: x, end: oom_devise}]\n"), HasSubstr("did you mean 'oom_device'?"));
  EXPECT_THAT(MoreRefusal("ends: [{regex: x, end: infrastructure, reason: nod}]\n"), HasSubstr("did you mean 'node'?"));
  EXPECT_THAT(MoreRefusal("exit_codes: {3: crash}\n"), HasSubstr("did you mean 'crashed'?"));
  EXPECT_THAT(MoreRefusal("ends: [{regex: x, end: timeout}]\n"), HasSubstr("unknown end 'timeout'"));
}

TEST(Definition, AllFaultsAreSaidAtOnce) {
  const std::string message = Refusal("name: other\ntested: never\nmetrics: 3\n");
  for (const char* fault :
       {"the name is 'other', and the file is called 'mine'", "'about' is missing", "'version' is missing",
        "'result' is missing", "unknown tested 'never'", "metrics is a list of mappings"}) {
    EXPECT_THAT(message, HasSubstr(fault));
  }
}

TEST(Definition, RefusesMissingKeysAndWrongTypes) {
  EXPECT_THAT(Refusal("[]"), HasSubstr("a definition is a mapping"));
  EXPECT_THAT(Refusal(kHead), HasSubstr("'metrics' is missing"));
  EXPECT_THAT(Refusal("name: mine\nversion: 1.0\n"), HasSubstr("version is text, not 1.0: put it into quotes"));
  EXPECT_THAT(Refusal("name: a/b\n"), HasSubstr("a name has letters"));
  EXPECT_THAT(Refusal("about: \"a\\nb\"\n"), HasSubstr("about is one line"));
  EXPECT_THAT(Refusal("about: \"" + std::string(2000, 'a') + "\"\n"), HasSubstr("at most 1024 bytes"));
  EXPECT_THAT(Refusal("name: [\n"), HasSubstr("some/mine.yaml:"));
  EXPECT_THAT(Refusal(std::string(kMaxTrainerBytes + 1, '#')), HasSubstr("some/mine.yaml"));
}

TEST(Definition, HasTheNameOfItsFileWithOrWithoutTheRelease) {
  const auto named = [](const std::string& name, const char* file) {
    return ParseTrainer("name: " + name + "\nabout: a\nversion: 0.2.0\ntested: log\nresult: patterns\n" +
                            "metrics: [{name: loss, regex: '(.)'}]\n",
                        file);
  };
  EXPECT_EQ(named("mine@0.2", "mine@0.2.yaml").name, "mine@0.2");
  EXPECT_EQ(DefinitionWords(named("mine@main", "mine.yaml")), "mine@main (0.2.0)");
  EXPECT_EQ(named("mine@0.2.2", "mine@0.2.yaml").name, "mine@0.2.2");
  EXPECT_THROW(named("mine@0.2", "mine@0.3.yaml"), Error);
  EXPECT_THROW(named("mine@0.20", "mine@0.2.yaml"), Error);
  EXPECT_THROW(named("mine", "mine@0.2.yaml"), Error);
  for (const char* name : {"'mine@'", "'@0.2'", "mine@0@2", "mine@.2", "mine@a/b"}) {
    EXPECT_THAT(Refusal("name: " + std::string(name) + "\n"), HasSubstr("one '@' before a release")) << name;
  }
}

TEST(Definition, SaysHowItWasTestedAndWhen) {
  const auto head = [](const std::string& tested) {
    return "name: mine\nabout: a\nversion: v\nresult: patterns\nmetrics: [{name: loss, regex: '(.)'}]\n" + tested;
  };
  const Trainer loaded = Parse(head("tested: loader\ntested_on: 2024-02-29\n"));
  EXPECT_EQ(loaded.tested, "loader");
  EXPECT_EQ(loaded.tested_on, "2024-02-29");
  EXPECT_EQ(Parse(head("tested: log\ntested_on: \"2026-11-28\"\n")).tested_on, "2026-11-28");
  EXPECT_EQ(Parse(head("tested: log\n")).tested_on, "");
  EXPECT_THAT(Refusal(head("tested: loader\n")), HasSubstr("mine.yaml:6:9: tested: loader has a date"));
  EXPECT_THAT(Refusal(head("tested: source\ntested_on: 2026-11-28\n")), HasSubstr("tested_on goes with"));
  EXPECT_THAT(Refusal(head("tested: loader\ntested_on: 2026\n")), HasSubstr("tested_on is text"));
  for (const char* day : {"2026-02-29", "2026-13-01", "2026-00-01", "2026-11-31", "26-11-28", "2026-1-2", "2026/11/28",
                          "+026-11-28", "2026-11-28 ", "28-11-2026", "2026-11--1", "today"}) {
    EXPECT_THAT(Refusal(head("tested: loader\ntested_on: '" + std::string(day) + "'\n")),
                HasSubstr("mine.yaml:7:12: tested_on is a day of the calendar"))
        << day;
  }
}

TEST(Definition, PatternsAreHeldToWhatTheyMustHave) {
  EXPECT_THAT(MetricRefusal("{name: loss, regex: loss}"), HasSubstr("no group says what the value is"));
  EXPECT_THAT(MetricRefusal("{name: loss, regex: '(a)(b)'}"), HasSubstr("2 groups may be the value"));
  EXPECT_THAT(MetricRefusal("{name: loss, regex: '(?P<step>a)'}"), HasSubstr("no group"));
  EXPECT_THAT(MetricRefusal("{name: loss, regex: '(?=a)(b)'}"), HasSubstr("RE2 does not take this pattern"));
  EXPECT_THAT(MetricRefusal(R"({name: loss, regex: '(a)\1'})"), HasSubstr("RE2 does not take"));
  EXPECT_THAT(MetricRefusal("{name: loss, regex: '((a{1000}){1000})'}"), HasSubstr("RE2 does not take"));
  EXPECT_THAT(MetricRefusal("{name: loss, regex: '(" + std::string(kMaxPatternBytes, 'a') + ")'}"),
              HasSubstr("a pattern has at most 1000 bytes"));
  EXPECT_THAT(MoreRefusal("ends: [{regex: '(', end: crashed}]\n"), HasSubstr("RE2 does not take"));
}

TEST(Definition, MetricsAreHeldToTheirTables) {
  EXPECT_THAT(MetricRefusal("{name: step_time, regex: '(.)'}"), HasSubstr("step_time needs a unit"));
  EXPECT_THAT(MetricRefusal("{name: loss, regex: '(.)', unit: ms}"), HasSubstr("loss has no unit 'ms'"));
  EXPECT_THAT(MetricRefusal("{name: version, regex: '(.)', take: median}"), HasSubstr("version is text"));
  EXPECT_THAT(MetricRefusal("{regex: '(.)'}"), HasSubstr("'name' is missing"));
  EXPECT_THAT(MetricRefusal("{name: loss}"), HasSubstr("a metric has either 'regex' or 'json'"));
  EXPECT_THAT(MetricRefusal("{name: loss, json: /loss, regex: '(.)'}"), HasSubstr("either 'regex' or 'json'"));
  EXPECT_THAT(Refusal("result: file\nmetrics: [{name: loss, json: loss}]\n"), HasSubstr("json is a pointer"));
  EXPECT_THAT(Refusal("result: file\nmetrics: [{name: loss, regex: '(.)'}]\n"), HasSubstr("with result: file"));
  std::string many;
  for (size_t i = 0; i <= kMostMetrics; ++i) many += "{name: loss, regex: '(.)'},";
  EXPECT_THAT(MetricRefusal(many), HasSubstr("metrics has at most 256 entries, and here 257"));
}

TEST(Definition, AMetricOfOnesOwnHasANameAndAUnit) {
  const Trainer trainer = Parse(std::string(kHead) +
                                "fields: {log_every: {type: integer, default: 5}}\ncommand: [x]\nmetrics:\n"
                                "  - {name: bus_bandwidth, regex: 'bw (.)', unit: GB/s, times: [2, ranks]}\n"
                                "  - {name: step_time, regex: '.', take: arrival, every: log_every}\n");
  EXPECT_EQ(trainer.metrics.at(0).own->name, "bus_bandwidth");
  EXPECT_EQ(trainer.metrics[0].unit->kept, "GB/s");
  EXPECT_EQ(trainer.metrics[0].factors, (std::vector<std::string>{"2", "ranks"}));
  EXPECT_EQ(trainer.metrics.at(1).every, "log_every");
  EXPECT_THAT(MetricRefusal("{name: Bandwidth, regex: '(.)', unit: GB/s}"), HasSubstr("a name of small letters"));
  EXPECT_THAT(MetricRefusal("{name: bandwidth, regex: '(.)'}"), HasSubstr("One of your own has a unit"));
  EXPECT_THAT(MetricRefusal("{name: bandwidth, regex: '(.)', unit: '" + std::string(33, 'x') + "'}"),
              HasSubstr("at most 32 bytes"));
  EXPECT_THAT(MetricRefusal("{name: bandwidth, regex: '(?P<value>.)(?P<unit>.)', unit: GB/s}"),
              HasSubstr("a unit of time or of memory alone"));
}

TEST(Definition, TimedLinesAndFactorsAreHeldToTheirRules) {
  EXPECT_THAT(MetricRefusal("{name: loss, regex: '(.)', take: arrival}"), HasSubstr("is of step_time alone"));
  EXPECT_THAT(MetricRefusal("{name: step_time, regex: '.', take: arrival, unit: ms}"), HasSubstr("has no unit"));
  EXPECT_THAT(MetricRefusal("{name: step_time, regex: '(.)', take: stamp}"), HasSubstr("'format' is missing"));
  EXPECT_THAT(MetricRefusal("{name: step_time, regex: '(.)', take: stamp, format: '%H:%M'}"),
              HasSubstr("a format says seconds"));
  EXPECT_THAT(MetricRefusal("{name: step_time, regex: '(.)', unit: ms, format: '%s'}"),
              HasSubstr("format goes with take: stamp"));
  EXPECT_THAT(MetricRefusal("{name: loss, regex: '(.)', times: precision}"), HasSubstr("a field that is one"));
  EXPECT_THAT(MetricRefusal("{name: loss, regex: '(.)', times: 0}"), HasSubstr("a number above 0"));
  EXPECT_THAT(MetricRefusal("{name: loss, regex: '(.)', step: /step}"), HasSubstr("step goes with json"));
  EXPECT_THAT(MetricRefusal("{name: step_time, regex: '(.)', unit: [ms, s]}"), HasSubstr("in the group (?P<unit>…)"));
  EXPECT_THAT(MetricRefusal("{name: loss, regex: '(?P<value>.)(?P<unit>.)'}"), HasSubstr("loss has no unit"));
}

TEST(Definition, EndsAreWhatALogCanTell) {
  EXPECT_THAT(MoreRefusal("ends: [{regex: x}]\n"), HasSubstr("'end' is missing"));
  EXPECT_THAT(MoreRefusal("ends: [{end: crashed}]\n"), HasSubstr("'regex' is missing"));
  EXPECT_THAT(MoreRefusal("ends: [{regex: x, end: infrastructure}]\n"), HasSubstr("infrastructure has a reason"));
  EXPECT_THAT(MoreRefusal("ends: [{regex: x, end: crashed, reason: node}]\n"), HasSubstr("crashed has no reason"));
  EXPECT_THAT(MoreRefusal("exit_codes: []\n"), HasSubstr("exit_codes is a mapping"));
  EXPECT_THAT(MoreRefusal("exit_codes: {0: crashed}\n"), HasSubstr("between 1 and 255"));
  EXPECT_THAT(MoreRefusal("exit_codes: {256: crashed}\n"), HasSubstr("between 1 and 255"));
  EXPECT_THAT(MoreRefusal("exit_codes: {x: crashed}\n"), HasSubstr("between 1 and 255"));
  EXPECT_THAT(MoreRefusal("exit_codes: {3: crashed, 3: oom_host}\n"), HasSubstr("exit code 3 is given twice"));
}

TEST(Definition, AModelIsComparedUnlessItSaysNo) {
  const std::string good = std::string(kHead) + "metrics: [{name: loss, regex: 'loss (.*)'}]\n";
  EXPECT_TRUE(Parse(good).checks_parameters);
  EXPECT_TRUE(Parse(good).checks_flops);
  const Trainer other = Parse(good + "checks: {parameters: no, flops: yes}\n");
  EXPECT_FALSE(other.checks_parameters);
  EXPECT_TRUE(other.checks_flops);
  EXPECT_THAT(MoreRefusal("checks: {parameters: maybe}\n"), HasSubstr("checks: parameters is yes or no, not"));
  EXPECT_THAT(MoreRefusal("checks: {loss: no}\n"), HasSubstr("unknown check 'loss'"));
}

TEST(Definition, TheIfOfAMetricIsAConditionOnAPoint) {
  const auto of = [](const std::string& condition) {
    return "command: [x]\nmetrics: [{name: loss, regex: 'loss (.*)', if: '" + condition + "'}]\n";
  };
  EXPECT_TRUE(Parse(kHead + of("{{ranks}} == 1")).metrics.at(0).only_if.has_value());
  EXPECT_THAT(Refusal(kHead + of("{{rank_s}} == 1")), HasSubstr("there is no field 'rank_s', did you mean 'ranks'?"));
  EXPECT_THAT(Refusal(kHead + of("{{ranks}}")), HasSubstr("if is a condition, such as"));
  EXPECT_THAT(Refusal(std::string(kHead) + "metrics: [{name: loss, regex: 'loss (.*)', if: '{{ranks}} == 1'}]\n"),
              HasSubstr("if goes with a command, and there is none"));
}

TEST(Definition, AFileThatIsNotThereIsSaid) { EXPECT_THROW(LoadTrainer("/nowhere/mine.yaml"), Error); }

}  // namespace
}  // namespace ridgeline::trainers
