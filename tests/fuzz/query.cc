// The SQL of a person or a report is answered within bounds or refused. It changes nothing, even in a database that may
// be written to.
#include "store/sqlite.h"

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ridgeline;  // NOLINT(google-build-using-namespace): a program of one function
  static const fuzz::Folder folder;
  static store::Database database = [] {
    store::Database made(folder.path() / "it.db", store::Database::Access::kReadWrite,
                         {.longest_look = std::chrono::milliseconds(200), .most_answer_bytes = 1'000'000});
    made.Execute(
        "CREATE TABLE runs(seed INTEGER, status TEXT, loss TEXT); INSERT INTO runs VALUES (1, 'ok', '[1, 2]'), "
        "(2, 'crashed', NULL); CREATE VIEW latest AS SELECT * FROM runs");
    return made;
  }();
  static const auto state = [] {
    return database.Integer("SELECT count(*) + sum(seed) * 1000 FROM runs") * 1000 +
           database.Integer("SELECT count(*) FROM sqlite_master");
  };
  static const int64_t before = state();
  try {
    const Table table = database.Select(std::string(fuzz::TextOf(data, size)), {{"campaign", "night-1"}});
    fuzz::Require(!table.columns.empty(), "an answer has columns");
    for (const auto& row : table.rows) fuzz::Require(row.size() == table.columns.size(), "a row has all columns");
  } catch (const Error& e) {
    const auto says = [&](const char* words) { return e.message().find(words) != std::string::npos; };
    fuzz::Require(e.kind() == ErrorKind::kUsage || says("took too long") || says("an answer of more than"),
                  "an error blames the question");
  }
  fuzz::Require(state() == before, "a question changes nothing");
  static const auto files = [] {
    return std::distance(std::filesystem::directory_iterator(folder.path()), std::filesystem::directory_iterator());
  };
  static const auto files_before = files();
  fuzz::Require(files() == files_before, "a question makes no file");
  return 0;
}
