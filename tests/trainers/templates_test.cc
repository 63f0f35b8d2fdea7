// The template language: what it makes of values, and what it refuses.
#include "trainers/templates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/error.h"
#include "base/json.h"
#include "base/process.h"
#include "yaml/yaml.h"

namespace ridgeline::trainers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::optional<FieldValue> Values(std::string_view name) {
  if (name == "precision") return "fp8";
  if (name == "layers") return int64_t{12};
  if (name == "flash") return true;
  if (name == "compile") return false;
  if (name == "nothing") return "";
  if (name == "clip") return 1.0;
  if (name == "rate") return 6e-5;
  if (name == "path") return "a \"b\"\n\\c\x7f";
  return std::nullopt;
}

std::vector<std::string> Arguments(const std::string& text) { return Template(text).Arguments(Values); }
std::string InFile(const std::string& text) { return Template(text, Quoting::kQuoted).Text(Values); }

std::string RefusalOfTemplate(const std::string& text, Quoting quoting = Quoting::kNone) {
  try {
    const std::string made = Template(text, quoting).Text(Values);
    ADD_FAILURE() << "was taken: " << text << " as " << made;
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
    return e.message();
  }
  return {};
}

TEST(Templates, AValueStandsWhereItsNameDid) {
  EXPECT_THAT(Arguments("--layers={{layers}}"), ElementsAre("--layers=12"));
  EXPECT_THAT(Arguments("{{ flash }}/{{compile}}"), ElementsAre("true/false"));
  EXPECT_THAT(Arguments("no places {here} }}"), ElementsAre("no places {here} }}"));
  EXPECT_THAT(Template("{{layers}} {{if flash}}{{env.HOME}}{{end}}").Names(),
              ElementsAre("env.HOME", "flash", "layers"));
}

TEST(Templates, AWholeNumberHasAPointWhereAProgramWantsOne) {
  EXPECT_THAT(Arguments("--clip={{clip}}"), ElementsAre("--clip=1"));
  EXPECT_THAT(Arguments("--clip={{clip | float}}"), ElementsAre("--clip=1.0"));
  EXPECT_THAT(Arguments("{{layers | float}}"), ElementsAre("12.0"));
  EXPECT_THAT(Arguments("{{rate | float}}"), ElementsAre("6e-05"));
  EXPECT_THAT(Arguments("{{none | default: 0 | float}}"), ElementsAre("0.0"));
  EXPECT_THAT(Arguments("{{precision | float}}"), ElementsAre("fp8"));
  EXPECT_EQ(InFile("clip = {{clip | float}}"), "clip = 1.0");
}

TEST(Templates, AnItemIsOneArgumentWhateverIsInIt) {
  EXPECT_THAT(Arguments("{{path}} $(touch /x); `y`"), ElementsAre("a \"b\"\n\\c\x7f $(touch /x); `y`"));
}

TEST(Templates, AnEmptyItemIsNoArgument) {
  EXPECT_THAT(Arguments("{{nothing}}"), IsEmpty());
  EXPECT_THAT(Arguments("{{if compile}}--compile{{end}}"), IsEmpty());
}

TEST(Templates, AMapSaysWhatAValueIsCalledThere) {
  EXPECT_THAT(Arguments("{{precision | map: bf16=--bf16, fp8=\"--fp8, \\\"hybrid\\\"\"}}"),
              ElementsAre("--fp8, \"hybrid\""));
  EXPECT_THAT(Arguments("{{precision | map: bf16=--bf16, fp8=}}"), IsEmpty());
  EXPECT_EQ(RefusalOfTemplate("{{precision | map: bf16=a, fp32=b}}"), "precision is fp8, and it takes bf16, fp32");
}

TEST(Templates, WordsAreArgumentsEach) {
  EXPECT_THAT(Arguments("{{precision | map: fp8=\"--fp8-format  hybrid\" | words}}"),
              ElementsAre("--fp8-format", "hybrid"));
  EXPECT_THAT(RefusalOfTemplate("--x={{precision | words}}"), HasSubstr("a value that is all of its item"));
}

TEST(Templates, ADefaultIsForWhatIsNotThereOrEmpty) {
  EXPECT_THAT(Arguments("{{env.DIR | default: .}}/train.py"), ElementsAre("./train.py"));
  EXPECT_THAT(Arguments("{{nothing | default: \"a b\"}}"), ElementsAre("a b"));
  EXPECT_THAT(Arguments("{{layers | default: 1}}"), ElementsAre("12"));
  EXPECT_EQ(RefusalOfTemplate("{{env.DIR}}"), "env.DIR has no value here");
}

TEST(Templates, AStandInIsForWhatIsMissingAlone) {
  const Lookup stand_in = [](std::string_view name) { return FieldValue("<" + std::string(name) + ">"); };
  const auto shown = [&](const std::string& text) { return Template(text).Text(Values, stand_in); };
  EXPECT_EQ(shown("{{env.DIR}}/{{layers}}"), "<env.DIR>/12");
  EXPECT_EQ(shown("{{env.DIR | default: .}}{{if env.DIR}}x{{end}}"), ".");
  EXPECT_EQ(shown("{{env.DIR | map: a=b}}"), "<env.DIR>");
  EXPECT_EQ(Template("{{env.DIR}} \"{{env.DIR}}\"", Quoting::kQuoted).Text(Values, stand_in),
            "\"<env.DIR>\" \"<env.DIR>\"");
}

TEST(Templates, ConditionsChoose) {
  EXPECT_THAT(Arguments("{{if precision == fp8}}a{{else}}b{{end}}"), ElementsAre("a"));
  EXPECT_THAT(Arguments("{{if precision != \"fp8\"}}a{{else}}b{{end}}"), ElementsAre("b"));
  EXPECT_THAT(Arguments("{{if layers == 12}}{{if compile}}a{{else}}b{{end}}{{end}}"), ElementsAre("b"));
  EXPECT_THAT(Arguments("{{if unknown}}a{{else}}b{{end}}"), ElementsAre("b"));
}

TEST(Templates, TextInFilesIsQuotedAsTheyAllReadIt) {
  EXPECT_EQ(InFile("steps = {{layers}}\nflash: {{flash}}"), "steps = 12\nflash: true");
  EXPECT_EQ(InFile("name = {{path}}"), "name = \"a \\\"b\\\"\\n\\\\c\\u007f\"");
  EXPECT_EQ(InFile("name = \"x/{{path}}\"\nnext = {{precision}}"),
            "name = \"x/a \\\"b\\\"\\n\\\\c\\u007f\"\nnext = \"fp8\"");
  EXPECT_EQ(InFile("a = {{precision | map: fp8=e4m3}}"), "a = e4m3") << "the definition's own words";
  EXPECT_THAT(RefusalOfTemplate("a: '{{path}}'", Quoting::kQuoted), HasSubstr("cannot stand between single quotes"));
  EXPECT_THAT(RefusalOfTemplate("{{path | words}}", Quoting::kQuoted), HasSubstr("no filter 'words' here"));
}

TEST(Templates, ValuesInPythonAreExpressionsOfTheirOwn) {
  const auto in_python = [](const std::string& text) { return Template(text, Quoting::kPython).Text(Values); };
  EXPECT_EQ(in_python("run({{layers}}, lr={{rate}}, flash={{flash}}, compile={{compile}}, clip={{clip | float}})"),
            "run(12, lr=6.0e-05, flash=True, compile=False, clip=1.0)");
  EXPECT_EQ(in_python("x = {{path}}  # {{path}}"), R"(x = ("a \"b\"\n\\c\u007f")  # ("a \"b\"\n\\c\u007f"))");
  EXPECT_EQ(in_python("f{{nothing}}{{nothing}}"), R"(f("")(""))") << "no f-string, and no three quotes in a row";
  EXPECT_EQ(in_python("\"{{precision | map: fp8=float8}}\""), "\"float8\"") << "the definition's own words";
  const auto refusal = [](const std::string& text) { return RefusalOfTemplate(text, Quoting::kPython); };
  EXPECT_THAT(refusal("x = f\"a{{path}}\""), HasSubstr("in Python a value cannot stand between quotes"));
  EXPECT_THAT(refusal("x = \"{{if flash}}{{path}}{{end}}\""), HasSubstr("cannot stand between quotes"));
  EXPECT_THAT(refusal("x = '{{path}}'"), HasSubstr("cannot stand between single quotes"));
  EXPECT_THAT(refusal("\"\"\"\n{{path}}\n\"\"\""), HasSubstr("Python has no \"\"\" here"));
  EXPECT_THAT(refusal("'''\n{{path}}\n'''"), HasSubstr("Python has no ''' here"));
  EXPECT_THAT(refusal("x = \"\\\n{{path}}\""), HasSubstr("ends with no backslash"));
}

// PyYAML reads YAML 1.1, in which 1e-08 is text. TOML and JSON have their own rules.
TEST(Templates, NumbersInFilesAreNumbersToWhoeverReadsThem) {
  const std::vector<double> numbers = {0,      1,      -1,    0.1,  3e-4,   1e-5,     1e-8,      1e5,    1e15,
                                       1e16,   1.5e-8, -1e-9, 1e22, 1e-300, 1.75e300, 123456789, 0.0001, 1.0 / 3,
                                       5e-324, 1e100,  2e-7,  6e-5, 0.95,   0.999,    500000.0,  1e17,   -2.5e-10};
  std::string list;
  Json expected = Json::array();
  for (const double number : numbers) {
    const Lookup one = [&](std::string_view) { return FieldValue(number); };
    for (const char* text : {"{{x}}", "{{x | float}}"}) {
      list += (list.empty() ? "[" : ", ") + Template(text, Quoting::kQuoted).Text(one);
      expected.push_back(number);
    }
  }
  list += "]";
  const yaml::YamlNode ours = yaml::ParseYaml(list);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(ours.items.at(i).scalar, expected.at(i)) << list;
  const Captured said =
      ridgeline::Run({"python3", "-c",
                      "import json, sys, tomllib, yaml\n"
                      "text = sys.argv[1]\n"
                      "for values in yaml.safe_load(text), tomllib.loads('x = ' + text)['x'], json.loads(text):\n"
                      "    assert all(type(v) in (int, float) for v in values), values\n"
                      "    print(json.dumps([float(v) for v in values]))\n",
                      list});
  ASSERT_TRUE(said.status.ok()) << said.stderr_text << list;
  std::istringstream lines(said.stdout_text);
  for (std::string line; std::getline(lines, line);) EXPECT_EQ(ParseJson(line, "a reader"), expected) << list;
}

TEST(Templates, RefusesUnknownSyntax) {
  EXPECT_EQ(RefusalOfTemplate("{{layers"), "a {{ is not closed by }}");
  EXPECT_THAT(RefusalOfTemplate("{{}}"), HasSubstr("a name is missing"));
  EXPECT_THAT(RefusalOfTemplate("{{layers + 1}}"), HasSubstr("there is more behind the name"));
  EXPECT_THAT(RefusalOfTemplate("{{layers | upper}}"), HasSubstr("there is no filter 'upper' here"));
  EXPECT_THAT(RefusalOfTemplate("{{layers | map: 12}}"), HasSubstr("a map has entries such as"));
  EXPECT_THAT(RefusalOfTemplate("{{layers | default: \"x}}"), HasSubstr("not closed"));
  EXPECT_THAT(RefusalOfTemplate("{{if layers}}x"), HasSubstr("{{if layers}} without its {{end}}"));
  EXPECT_THAT(RefusalOfTemplate("{{if layers > 3}}x{{end}}"), HasSubstr("a condition is NAME"));
  EXPECT_THAT(RefusalOfTemplate("x{{end}}"), HasSubstr("{{end}} without an {{if}}"));
  EXPECT_THAT(RefusalOfTemplate("{{if layers}}a{{else}}b{{else}}c{{end}}"), HasSubstr("two {{else}}"));
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "{{if layers}}";
  EXPECT_THAT(RefusalOfTemplate(deep), HasSubstr("in each other"));
}

}  // namespace
}  // namespace ridgeline::trainers
