#include "store/sqlite.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <thread>
#include <utility>

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>

#include "base/error.h"

namespace ridgeline {
namespace {

Error Translated(int extended_code, const std::string& message, const std::string& file) {
  const auto infrastructure = [&](const std::string& what, const std::string& hint) {
    return Error(ErrorKind::kInfrastructure, fmt::format("{}: {}", file, what), hint);
  };
  if (extended_code == SQLITE_READONLY_ROLLBACK) {
    return infrastructure("was being changed by a program that was ended, and that change is to be taken back first",
                          fmt::format("the next `ridgeline run SWEEP --db {}` does it", file));
  }
  switch (extended_code & 0xff) {
    case SQLITE_NOTADB:
      return {ErrorKind::kInvalidInput, file + " is not an SQLite database; it was left as it is",
              "name another file with --db, or move this one away"};
    case SQLITE_CORRUPT:
      return {ErrorKind::kInvalidInput, fmt::format("{} is damaged ({}); it was left as it is", file, message),
              fmt::format("copy it and its -wal file, then save what can be read with: sqlite3 {} .recover", file)};
    case SQLITE_FULL:
      return infrastructure("the disk is full; what was stored before is safe, the last change was undone",
                            "free some space and run the same command again");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return infrastructure("another process has kept it locked for longer than is waited for",
                            "wait for the other command to end, or end it, and try again");
    case SQLITE_INTERRUPT:
      return infrastructure("a question to it took too long, and was stopped",
                            "ask for less; `ridgeline db check` says whether the file is as Ridgeline writes it");
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return infrastructure("cannot be written: " + message, "check who may write the file and its folder");
    case SQLITE_CANTOPEN:
      return infrastructure(
          "cannot be opened",
          "its folder must exist, and be writable even for reading, since SQLite keeps its lock there");
    case SQLITE_IOERR:
      return infrastructure(fmt::format("the disk failed or is full ({}); what was stored before is safe", message),
                            "check the disk and its free space, then run the same command again");
    default:
      return {ErrorKind::kInternal, fmt::format("{}: SQLite: {}", file, message)};
  }
}

// Whether there is a rollback journal that was on the disk before the file was written to.
bool HasHotJournal(const std::string& file) {
  constexpr std::string_view kMagic = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7";
  std::ifstream in(file + "-journal", std::ios::binary);
  std::array<char, kMagic.size()> begin{};
  in.read(begin.data(), begin.size());
  return std::string_view(begin.data(), static_cast<size_t>(in.gcount())) == kMagic;
}

// SQLite opens what is there and waits: for the other end of a FIFO, or for a device. The files beside are its own.
void RequireRegular(const std::string& file) {
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
    struct stat info {};
    if (::stat((file + suffix).c_str(), &info) != 0 || S_ISREG(info.st_mode)) continue;
    throw Error(ErrorKind::kInvalidInput, fmt::format("{}{} is no regular file; it was left as it is", file, suffix),
                "name another file with --db, or move this one away");
  }
}

// What SQLite does not see by itself: it takes a file shorter than a page for a new database, and would write over it,
// and does not miss the end of the last page.
void RequireWhole(const std::string& file) {
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  constexpr std::streamsize kHeaderBytes = 100;
  if (HasHotJournal(file)) return;  // a change that was cut off: SQLite takes it back before it reads
  std::ifstream in(file, std::ios::binary);
  std::array<char, kHeaderBytes> header{};
  in.read(header.data(), kHeaderBytes);
  if (in.gcount() == 0) return;  // missing, empty or unreadable: SQLite's to say
  if (in.gcount() < kHeaderBytes || !std::string_view(header.data(), header.size()).starts_with(kMagic)) {
    throw Translated(SQLITE_NOTADB, "", file);
  }
  const auto big_endian = [&](size_t at, size_t bytes) {
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; ++i) value = value << 8 | static_cast<unsigned char>(header[at + i]);
    return value;
  };
  const uint64_t page_bytes = big_endian(16, 2) == 1 ? 65536 : big_endian(16, 2);
  std::error_code error;
  const bool has_log = std::filesystem::file_size(file + "-wal", error) > 0 && !error;  // it may hold the rest
  if (!has_log && std::filesystem::file_size(file) < page_bytes * big_endian(28, 4)) {
    throw Translated(SQLITE_CORRUPT, "it is cut short", file);
  }
}

// Calls `work`, which may throw SQLiteCpp's exception.
template <typename Work>
auto Guard(const std::string& file, Work work) {
  try {
    return work();
  } catch (const SQLite::Exception& e) {
    throw Translated(e.getExtendedErrorCode(), e.what(), file);
  }
}

// What a person's statement may do: read, call functions, and ask what the columns are.
int AuthorizeReading(void*, int action, const char* first, const char* second, const char*, const char*) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    case SQLITE_FUNCTION:
      return second != nullptr && std::string_view(second) == "load_extension" ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_UPDATE:  // asked when json_each is declared; a real one is refused by SQLite itself
      return first != nullptr && std::string_view(first) == "sqlite_master" ? SQLITE_OK : SQLITE_DENY;
    case SQLITE_PRAGMA: {
      constexpr std::array<std::string_view, 5> kAbout = {"foreign_key_list", "index_info", "index_list", "table_info",
                                                          "table_xinfo"};
      for (const std::string_view name : kAbout) {
        if (first != nullptr && name == first) return SQLITE_OK;
      }
      return SQLITE_DENY;
    }
    default:
      return SQLITE_DENY;
  }
}

// The authorizer stands while this does: SQLite may prepare again when another process changes the schema. So does the
// limit of a value's length: one function call can make any length, and no clock is looked at meanwhile.
class ReadingOnly {
 public:
  explicit ReadingOnly(sqlite3* handle)
      : handle_(handle), length_before_(sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, kMostValueBytes)) {
    sqlite3_set_authorizer(handle_, AuthorizeReading, nullptr);
  }
  ReadingOnly(const ReadingOnly&) = delete;
  ReadingOnly& operator=(const ReadingOnly&) = delete;
  ~ReadingOnly() {
    sqlite3_set_authorizer(handle_, nullptr, nullptr);
    sqlite3_limit(handle_, SQLITE_LIMIT_LENGTH, length_before_);
  }

 private:
  static constexpr int kMostValueBytes = 64 << 20;  // eight whole results

  sqlite3* handle_;
  int length_before_;
};

// A person's question is timed, also in a program that may write.
class Timed {
 public:
  explicit Timed(bool& is_timed) : is_timed_(is_timed), before_(std::exchange(is_timed, true)) {}
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;
  ~Timed() { is_timed_ = before_; }

 private:
  bool& is_timed_;
  bool before_;
};

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using RawStatement = std::unique_ptr<sqlite3_stmt, Finalize>;

Cell CellOf(sqlite3_stmt* statement, int column) {
  const auto bytes = [&](const void* data) {
    return std::string(static_cast<const char*>(data), static_cast<size_t>(sqlite3_column_bytes(statement, column)));
  };
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
      return static_cast<int64_t>(sqlite3_column_int64(statement, column));
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement, column);
    case SQLITE_TEXT:
      return bytes(sqlite3_column_text(statement, column));
    case SQLITE_BLOB:
      return bytes(sqlite3_column_blob(statement, column));
    default:
      return std::monostate();
  }
}

}  // namespace

Statement::Statement(std::unique_ptr<SQLite::Statement> statement, std::string file, TimePoint& began)
    : statement_(std::move(statement)), file_(std::move(file)), began_(&began) {}
Statement::Statement(Statement&&) noexcept = default;
Statement::~Statement() = default;

void Statement::Bind(int index, int64_t value) {
  Guard(file_, [&] { statement_->bind(index, value); });
}
void Statement::Bind(int index, double value) {
  Guard(file_, [&] { std::isnan(value) ? statement_->bind(index) : statement_->bind(index, value); });
}
void Statement::Bind(int index, const std::string& value) {
  Guard(file_, [&] { statement_->bind(index, value); });
}
void Statement::Bind(int index, std::string_view value) { Bind(index, std::string(value)); }
void Statement::BindInPlace(int index, const std::string& value) {
  Guard(file_, [&] { statement_->bindNoCopy(index, value); });
}
void Statement::BindNull(int index) {
  Guard(file_, [&] { statement_->bind(index); });
}

bool Statement::Step() {
  *began_ = std::chrono::steady_clock::now();
  return Guard(file_, [&] { return statement_->executeStep(); });
}
void Statement::Run() {
  while (Step()) {
  }
  Reset();
}
void Statement::Reset() {
  Guard(file_, [&] { statement_->reset(); });
}

int64_t Statement::Integer(int column) const {
  return Guard(file_, [&] { return statement_->getColumn(column).getInt64(); });
}
double Statement::Number(int column) const {
  return Guard(file_, [&] { return statement_->getColumn(column).getDouble(); });
}
std::string Statement::Text(int column) const {
  return Guard(file_, [&] { return statement_->getColumn(column).getString(); });
}
Cell Statement::Value(int column) const {
  return Guard(file_, [&]() -> Cell {
    const SQLite::Column value = statement_->getColumn(column);
    if (value.isInteger()) return static_cast<int64_t>(value.getInt64());
    if (value.isFloat()) return value.getDouble();
    if (value.isNull()) return std::monostate();
    return value.getString();
  });
}

struct Database::Waiting {
  std::string file;
  Patience patience;
  TimePoint since = {};  // of a lock that is waited for
  bool said = false;
  TimePoint began = std::chrono::steady_clock::now();  // what SQLite is asked now
  bool is_timed = false;                               // that may take `longest_look`, no longer

  // SQLite's progress handler: whether to stop.
  static int IsTooLong(void* context) {
    const auto& self = *static_cast<Waiting*>(context);
    return self.is_timed && std::chrono::steady_clock::now() - self.began > self.patience.longest_look ? 1 : 0;
  }

  // SQLite's busy handler: whether to try again, after some sleep. `tries` begins with 0 at each wait.
  static int Wait(void* context, int tries) {
    auto& self = *static_cast<Waiting*>(context);
    const auto now = std::chrono::steady_clock::now();
    if (tries == 0) {
      self.since = now;
      self.said = false;
    }
    if (now - self.since >= self.patience.give_up_after) return 0;
    if (now - self.since >= self.patience.note_after && !self.said && self.patience.note) {
      self.said = true;
      self.patience.note(fmt::format("{} is locked by another process, which is waited for", self.file));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(std::min(1 + tries, 50)));
    return 1;
  }
};

Database::Database(const std::filesystem::path& file, Access access, Patience patience)
    : file_(file.string()), waiting_(new Waiting{.file = file_, .patience = std::move(patience)}) {
  const int flags = SQLite::OPEN_NOMUTEX | (access == Access::kReadOnly ? SQLite::OPEN_READONLY
                                                                        : SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  RequireRegular(file_);
  RequireWhole(file_);
  Guard(file_, [&] {
    database_ = std::make_unique<SQLite::Database>(file_, flags);
    sqlite3* handle = database_->getHandle();
    sqlite3_extended_result_codes(handle, 1);
    sqlite3_busy_handler(handle, Waiting::Wait, waiting_.get());
    sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    constexpr int kInstructions = 100'000;  // of SQLite's machine, between two looks at the clock: about 1 ms
    sqlite3_progress_handler(handle, kInstructions, Waiting::IsTooLong, waiting_.get());
    waiting_->is_timed = access == Access::kReadOnly;
    database_->exec("PRAGMA foreign_keys = ON; SELECT count(*) FROM sqlite_master");
  });
  RequireWhole(file_);  // where a change was taken back, it was not looked at before
}
Database::Database(Database&&) noexcept = default;
Database& Database::operator=(Database&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(waiting_, other.waiting_);
  std::swap(database_, other.database_);
  return *this;
}
Database::~Database() = default;

void Database::Execute(const std::string& sql) {
  waiting_->began = std::chrono::steady_clock::now();
  Guard(file_, [&] { database_->exec(sql); });
}
Statement Database::Prepare(const std::string& sql) {
  return Guard(file_,
               [&] { return Statement(std::make_unique<SQLite::Statement>(*database_, sql), file_, waiting_->began); });
}
int64_t Database::Integer(const std::string& sql) {
  Statement statement = Prepare(sql);
  return statement.Step() ? statement.Integer(0) : 0;
}
int64_t Database::Changes() const { return database_->getChanges(); }

void Database::Begin() { Execute("BEGIN IMMEDIATE"); }
void Database::Commit() { Execute("COMMIT"); }
void Database::Rollback() noexcept {
  // A full disk makes SQLite roll back by itself; there is nothing left to do then.
  if (sqlite3_get_autocommit(database_->getHandle()) == 0) database_->tryExec("ROLLBACK");
}

Table Database::Select(const std::string& sql, const std::map<std::string, std::string>& texts) {
  sqlite3* handle = database_->getHandle();
  const ReadingOnly guard(handle);
  const Timed timed(waiting_->is_timed);
  const auto prepare = [&](std::string_view text, std::string_view& rest) {
    sqlite3_stmt* statement = nullptr;
    const char* tail = nullptr;
    const int code = sqlite3_prepare_v2(handle, text.data(), static_cast<int>(text.size()), &statement, &tail);
    RawStatement owner(statement);
    if (code == SQLITE_AUTH) {
      throw Error(ErrorKind::kUsage, "this statement would do more than read the store: " + std::string(text),
                  "query takes one SELECT; the tables are in docs/store.md");
    }
    if (code == SQLITE_ERROR || code == SQLITE_TOOBIG) {
      throw Error(ErrorKind::kUsage, fmt::format("SQL: {}", sqlite3_errmsg(handle)),
                  "the columns of a table: SELECT name FROM pragma_table_info('runs')");
    }
    if (code != SQLITE_OK) throw Translated(sqlite3_extended_errcode(handle), sqlite3_errmsg(handle), file_);
    rest = text.substr(static_cast<size_t>(tail - text.data()));
    return owner;
  };

  std::string_view rest;
  const RawStatement statement = prepare(sql, rest);
  if (statement == nullptr) {
    throw Error(ErrorKind::kUsage, "there is no SQL statement", "for example: SELECT * FROM runs");
  }
  // The authorizer refused what writes already; this refuses what it has no word for, such as BEGIN.
  if (sqlite3_stmt_readonly(statement.get()) == 0 || sqlite3_column_count(statement.get()) == 0) {
    throw Error(ErrorKind::kUsage, "this statement does not read the store: " + sql, "query takes one SELECT");
  }
  while (!rest.empty()) {
    std::string_view after;
    if (prepare(rest, after) != nullptr) {
      throw Error(ErrorKind::kUsage, "more than one SQL statement", "run them one at a time");
    }
    rest = after.size() < rest.size() ? after : std::string_view();
  }

  for (const auto& [name, text] : texts) {
    const int index = sqlite3_bind_parameter_index(statement.get(), (":" + name).c_str());
    if (index == 0) continue;
    sqlite3_bind_text(statement.get(), index, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
  }

  Table table;
  const int columns = sqlite3_column_count(statement.get());
  for (int c = 0; c < columns; ++c) table.columns.emplace_back(sqlite3_column_name(statement.get(), c));
  int code = 0;
  const size_t most = waiting_->patience.most_answer_bytes;
  size_t bytes = 0;
  waiting_->began = std::chrono::steady_clock::now();
  while ((code = sqlite3_step(statement.get())) == SQLITE_ROW) {
    std::vector<Cell>& row = table.rows.emplace_back();
    row.reserve(static_cast<size_t>(columns));
    for (int c = 0; c < columns; ++c) {
      row.push_back(CellOf(statement.get(), c));
      const auto* text = std::get_if<std::string>(&row.back());
      bytes += sizeof(Cell) + (text == nullptr ? 0 : text->size());
    }
    if (bytes > most) {
      throw Error(
          ErrorKind::kInfrastructure,
          fmt::format("{}: an answer of more than {} MB, which is the most that is held here", file_, most / 1'000'000),
          "ask for less: for one sweep or campaign, or with LIMIT");
    }
  }
  if (code == SQLITE_DONE) return table;
  // Such as a text that is not JSON, or a pragma behind a table's name.
  if (code == SQLITE_ERROR || code == SQLITE_AUTH || code == SQLITE_MISMATCH || code == SQLITE_TOOBIG) {
    throw Error(ErrorKind::kUsage, fmt::format("SQL: {}", sqlite3_errmsg(handle)));
  }
  throw Translated(sqlite3_extended_errcode(handle), sqlite3_errmsg(handle), file_);
}

}  // namespace ridgeline
