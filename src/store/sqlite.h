// SQLite, through SQLiteCpp. No other code knows either. Every failure is an Error that names the file and says what to
// do; the kinds are those of store.h.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/table.h"

namespace SQLite {
class Database;
class Statement;
}  // namespace SQLite

namespace ridgeline::store {

struct Questioning;

// A prepared statement. As in SQLite, parameters count from 1 and columns from 0. REQUIRES: its Database outlives it.
class Statement {
 public:
  Statement(Statement&&) noexcept;
  ~Statement();

  void Bind(int index, int64_t value);
  void Bind(int index, double value);  // NaN, which SQL lacks, becomes NULL
  void Bind(int index, const std::string& value);
  void Bind(int index, std::string_view value);
  void BindInPlace(int index, const std::string& value);  // not copied; REQUIRES: `value` stays until the next Reset
  void BindNull(int index);

  bool Step();  // false: no more rows. Throws Error(kInfrastructure) if it takes too long (see Patience)
  void Run();   // steps to the end and resets; parameters keep their values
  void Reset();

  int64_t Integer(int column) const;  // 0 for NULL
  double Number(int column) const;    // the same
  std::string Text(int column) const;
  Cell Value(int column) const;

 private:
  friend class Database;
  Statement(std::unique_ptr<SQLite::Statement> statement, std::string file, Questioning& questioning);
  std::unique_ptr<SQLite::Statement> statement_;
  std::string file_;
  Questioning* questioning_;  // its Database's
};

// How long to wait for another process's lock, and what to report meanwhile. Also how long a reader's statement and a
// person's may search for the next row, and how large a person's answer may be. A file may come from a stranger, and a
// question may have no end.
struct Patience {
  std::chrono::milliseconds note_after = std::chrono::seconds(1);
  std::chrono::milliseconds give_up_after = std::chrono::seconds(60);
  std::function<void(const std::string& words)> note = {};           // called once for each wait; empty: no reports
  std::chrono::milliseconds longest_look = std::chrono::minutes(5);  // of a core's time
  size_t most_answer_bytes = size_t{1} << 30;                        // of Select, in memory
};

class Database {
 public:
  enum class Access { kReadOnly, kReadWrite };  // kReadWrite makes a missing file

  // Opens the file and proves that it can be read. Enforces foreign keys, waits for locks, and switches triggers off,
  // because the file may be a stranger's. kReadOnly also reads where nothing may be written, such as on a read-only
  // mount. For a file with a write-ahead log SQLite would have to write into its folder. There, the file is taken as
  // unchanging, and every call throws Error(kInfrastructure) if it did change.
  Database(const std::filesystem::path& file, Access access, Patience patience = {});
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;
  ~Database();

  const std::string& file() const { return file_; }
  // Goes on with a private copy of the file in memory, which may be written to. The file stays as it is.
  void MoveToMemory();
  void Execute(const std::string& sql);  // one or more statements
  Statement Prepare(const std::string& sql);
  int64_t Integer(const std::string& sql);  // the first value of the first row
  // Chooses how an interrupted change is undone. A network file system gets a rollback journal, because its machines do
  // not share the memory that a write-ahead log needs. Other file systems get such a log, with which readers and the
  // writer never wait for each other. REQUIRES: opened to write, outside a transaction. Throws Error(kInfrastructure)
  // if the mode must change while another process has the file open.
  void ChooseJournal();
  int64_t Changes() const;  // rows that the last statement changed

  void Begin();  // takes the write lock now, so that a commit never waits
  void Commit();
  void Rollback() noexcept;

  // Runs one statement from a person, which can read this file and nothing else. `texts` are the values of its
  // :parameters. Throws Error(kInfrastructure) for an answer that is too large (see Patience).
  Table Select(const std::string& sql, const std::map<std::string, std::string>& texts = {});

 private:
  void SetUp(SQLite::Database& connection);

  std::string file_;
  std::unique_ptr<Questioning> questioning_;  // outlives the connection, which calls it
  std::unique_ptr<SQLite::Database> database_;
};

}  // namespace ridgeline::store
