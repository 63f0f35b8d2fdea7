// The output of Slurm's tools and of the agent: its facts are read, and everything else is skipped. The agent's rows
// are accepted, or refused with an exception of the JSON library.
#include "slurm/meaning.h"
#include "slurm/parse.h"

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ridgeline;         // NOLINT(google-build-using-namespace): a program of one function
  using namespace ridgeline::slurm;  // NOLINT(google-build-using-namespace)
  const std::string_view text = fuzz::TextOf(data, size);
  for (const auto& rows : {ParseSqueue(text), ParseSacct(text)}) {
    for (const Row& row : rows) {
      fuzz::Require(row.name.empty() || row.name.starts_with("rl-"), "a row's name is a key of ours or nothing");
      if (row.tasks) fuzz::Require(row.tasks->size() <= 10'000'000, "an array has no more tasks than Slurm gives one");
      MeaningOf(row.state);
      WaitOf(row.reason);
    }
  }
  if (const auto tasks = ParseTasks(text)) {
    fuzz::Require(!tasks->empty(), "a text that names tasks names at least one");
    if (std::is_sorted(tasks->begin(), tasks->end())) {
      fuzz::Require(ParseTasks(FormatTasks(*tasks)) == tasks, "tasks are read as written");
    }
  }
  ParseConfig(text);
  WaitOf(text);
  TroubleOf(0, text);
  try {
    RowFromJson(plugin::Json::parse(text));
  } catch (const plugin::Json::exception&) {
    // The text is not a row.
  }
  return 0;
}
