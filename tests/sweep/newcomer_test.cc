// A newcomer's mistakes in a sweep file, and the message for each: goldens of the messages.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "sweep/sweep.h"

namespace ridgeline::sweep {
namespace {

std::string Said(const std::string& text) {
  try {
    ParseSweep(text, "s.yaml");
  } catch (const Error& e) {
    return e.message();
  }
  return "accepted";
}

struct Mistake {
  std::string file;
  std::string said;
};

void Expect(const std::vector<Mistake>& mistakes) {
  for (const Mistake& mistake : mistakes) EXPECT_EQ(Said(mistake.file), mistake.said) << mistake.file;
}

TEST(Newcomer, IndentsWithTabs) {
  const std::string said = "this line is indented with a tab; YAML is indented with spaces alone";
  Expect({
      {"name: a\ndefaults:\n\tmodel: llama-10m\n", "s.yaml:3:1: " + said},
      {"name: a\ndefaults:\n  model: llama-10m\n\tseed: 2\n", "s.yaml:4:1: " + said},
      {"name: a\nmatrix:\n  seed:\n    - 1\n  \t- 2\n", "s.yaml:5:3: " + said},
  });
  EXPECT_EQ(Said("name: a\ndefaults: {model: llama-10m,\n\tseed: 2}\nmatrix: {batch_size:\t[1, 2]}\n"), "accepted")
      << "within braces, and behind a colon, YAML takes tabs";
}

TEST(Newcomer, LeavesOutTheSpaceAfterAColon) {
  const std::string said = "'model:llama-10m' needs a space after its colon: 'model: llama-10m'";
  Expect({
      {"name: a\ndefaults: {model:llama-10m}\n", "s.yaml:2:12: " + said},
      {"name: a\ndefaults: {model:llama-10m, seed: 1}\n", "s.yaml:2:12: " + said},
      {"name: a\ndefaults:\n  model:llama-10m\n", "s.yaml:3:3: " + said},
      {"name: a\ndefaults:\n  model:llama-10m\n  seed: 1\n", "s.yaml:3:3: " + said},
      {"name:a\ndefaults: {seed: 1}\n", "s.yaml:1:1: 'name:a' needs a space after its colon: 'name: a'"},
      {"name: a\nlaunch: {launcher:slurm}\n",
       "s.yaml:2:10: 'launcher:slurm' needs a space after its colon: 'launcher: slurm'"},
      {"name: a\nlaunch:\n  launcher:slurm\n",
       "s.yaml:3:3: 'launcher:slurm' needs a space after its colon: 'launcher: slurm'"},
      {"name:a\n", "s.yaml:1:1: 'name:a' needs a space after its colon: 'name: a'"},
      {"name: a\nmatrix: {seed: [1, 2], batch_size:[1, 8]}\n",
       "s.yaml:2:24: 'batch_size:[1, 8]' needs a space after its colon: 'batch_size: [1, 8]'"},
      {"name: a\nmatrix:\n  batch_size:[1, 8]\n",
       "s.yaml:3:3: 'batch_size:[1, 8]' needs a space after its colon: 'batch_size: [1, 8]'"},
  });
}

TEST(Newcomer, LeavesATemplateWithoutQuotes) {
  Expect({
      {"name: a\nlaunch: {trainer: [python3, \"{{x}}.py\", --n={{n}}, --m={{m}}]}\n",
       "s.yaml:2:41: write \"--n={{n}}\" in quotes: braces within [ ] are YAML's own"},
  });
}

TEST(Newcomer, LeavesAComparisonWithoutQuotes) {
  const auto said = [](const std::string& comparison) {
    return "write the comparison in quotes, \"" + comparison + "\": YAML gives > and ! a meaning of their own";
  };
  const std::string head = "name: a\ndefaults: {model: llama-10m}\nmatrix: {batch_size: [1, 16]}\nexclude:\n";
  Expect({
      {head + "  - {batch_size: >8}\n", "s.yaml:5:18: " + said(">8")},
      {head + "  - {batch_size: >=8, seed: 1}\n", "s.yaml:5:18: " + said(">=8")},
      {head + "  - batch_size: >8\n", "s.yaml:5:17: " + said(">8")},
      {head + "  - batch_size: >8\n    seed: 1\n", "s.yaml:5:17: " + said(">8")},
      {head + "  - batch_size: >= 8\n    seed: 1\n", "s.yaml:5:17: " + said(">= 8")},
      {head + "  - {batch_size: !=8}\n", "s.yaml:5:18: " + said("!=8")},
  });
  EXPECT_EQ(Said(head + "  - {batch_size: <=8}\n"), "accepted") << "< means nothing to YAML";
  EXPECT_EQ(Said("name: a\ndescription: >2\n  Folded, with its indentation said.\ndefaults: {model: llama-10m}\n"),
            "accepted");
}

TEST(Newcomer, SaysAMemoryLimitWithoutAUnit) {
  const std::string head = "name: a\ndefaults: {model: llama-10m}\nlaunch: {memory_limit: ";
  Expect({
      {head + "64}\n",
       "s.yaml:3:24: memory_limit is 64 bytes, which is too little for anything: give the number a unit, such as 64GB"},
      {head + "64G}\n", "s.yaml:3:24: memory_limit is a size such as 8GB or 512MiB, not \"64G\""},
      {head + "\"64\"}\n", "s.yaml:3:24: memory_limit is a size such as 8GB or 512MiB, not \"64\""},
  });
}

TEST(Newcomer, AsksForGpusWhereNoneAreGiven) {
  Expect({{"name: a\ndefaults: {model: llama-10m}\nlaunch: {launcher: slurm, gpus: 8}\n",
           "s.yaml:3:33: gpus belongs in the launcher's own mapping, such as slurm: {gpus: 8}"}});
}

TEST(Newcomer, NamesAModelThatIsNotThere) {
  const auto model = [](const std::string& name) { return "name: a\ndefaults: {model: " + name + "}\n"; };
  Expect({
      {model("llama-7b"), "s.yaml:2:19: unknown model 'llama-7b'; the nearest are llama2-7b, llama-8b, llama2-13b"},
      {model("lama-13b"), "s.yaml:2:19: unknown model 'lama-13b'; the nearest are llama2-13b, llama-14b, llama-8b"},
      {model("falcon-7b"), "s.yaml:2:19: unknown model 'falcon-7b'; the nearest are mistral-7b, llama2-7b, llama-8b"},
      {model("llama-10"), "s.yaml:2:19: unknown model 'llama-10'; the nearest is llama-10m"},
      {model("gpt2"),
       "s.yaml:2:19: unknown model 'gpt2'; the nearest are gpt-10m, gpt-25m, gpt-124m, gpt-350m, gpt-1b, gpt-3b, "
       "gpt-8b, gpt-14b, gpt-32b, gpt-64b, gpt3-175b"},
  });
  const std::string all = Said(model("something"));
  EXPECT_NE(all.find("unknown model 'something'; there are llama-5m, llama-10m, "), std::string::npos) << all;
  EXPECT_NE(all.find("llama-350m, llama-1b, llama-3b"), std::string::npos) << "by family and size: " << all;
}

}  // namespace
}  // namespace ridgeline::sweep
