// SQLite, through SQLiteCpp: the one place that knows either. Every failure is an Error that names the file and says
// what to do; the kinds are those of store.h.
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

namespace ridgeline {

struct Questioning;

// A prepared statement; indices of parameters and of columns count from 1 and 0, as SQLite's do. REQUIRES: its
// Database outlives it.
class Statement {
 public:
  Statement(Statement&&) noexcept;
  ~Statement();

  void Bind(int index, int64_t value);
  void Bind(int index, double value);  // NaN, which SQL has not, becomes NULL
  void Bind(int index, const std::string& value);
  void Bind(int index, std::string_view value);
  void BindInPlace(int index, const std::string& value);  // not copied: REQUIRES that it stays until the next Reset
  void BindNull(int index);

  bool Step();  // false: no more rows; throws Error(kInfrastructure) for one that takes too long (see Patience)
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

// How long a lock of another process is waited for, and what is said of it meanwhile. How long a reader's statement
// and a person's may look for the next row, and how large a person's answer may be: a file may be a stranger's, and a
// question one that has no end.
struct Patience {
  std::chrono::milliseconds note_after = std::chrono::seconds(1);
  std::chrono::milliseconds give_up_after = std::chrono::seconds(60);
  std::function<void(const std::string& words)> note = {};  // once a wait; empty: nobody listens
  std::chrono::milliseconds longest_look = std::chrono::minutes(5);
  size_t most_answer_bytes = size_t{1} << 30;  // of Select, in memory
};

class Database {
 public:
  enum class Access { kReadOnly, kReadWrite };  // kReadWrite makes the file where it is missing

  // Opens the file and proves that it can be read. Foreign keys are enforced; a lock is waited for. A stranger's
  // file's triggers are off. kReadOnly reads where nothing may be written, too, on a read-only mount as well: then a
  // file with a write-ahead log, which SQLite needs its folder for, is taken as one that does not change, and every
  // call throws Error(kInfrastructure) if it did.
  Database(const std::filesystem::path& file, Access access, Patience patience = {});
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;
  ~Database();

  const std::string& file() const { return file_; }
  void Execute(const std::string& sql);  // one or more statements
  Statement Prepare(const std::string& sql);
  int64_t Integer(const std::string& sql);  // the first value of the first row
  // How a change is taken back that is cut off: by a rollback journal where other machines may have the file's file
  // system mounted, since those do not share the memory that a write-ahead log needs; else by such a log, with which
  // readers never wait for the writer, nor it for them. REQUIRES: opened to write, outside a transaction. Throws
  // Error(kInfrastructure) where it is another and somebody has the file open.
  void ChooseJournal();
  int64_t Changes() const;  // rows the last statement changed

  void Begin();  // takes the write lock now, so that a commit never waits
  void Commit();
  void Rollback() noexcept;

  // One statement from a person: it can read this file and nothing else. `texts` are its :parameters' values. Throws
  // Error(kUsage) for an answer that is too large (see Patience).
  Table Select(const std::string& sql, const std::map<std::string, std::string>& texts = {});

 private:
  std::string file_;
  std::unique_ptr<Questioning> questioning_;  // outlives the connection, which calls it
  std::unique_ptr<SQLite::Database> database_;
};

}  // namespace ridgeline
