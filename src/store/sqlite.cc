#include "store/sqlite.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <ctime>
#include <fstream>
#include <optional>
#include <thread>
#include <utility>

#include <SQLiteCpp/Backup.h>
#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>

#include "base/error.h"
#include "base/file_system.h"
#include "base/files.h"

namespace ridgeline::store {

// Identifies the state of a file. If any of these changed, the file was written to.
struct FileStamp {
  int64_t modified_ns = 0;
  int64_t size = 0;
  uint64_t inode = 0;
  int64_t log_size = 0;
  bool operator==(const FileStamp&) const = default;
};

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
      return {ErrorKind::kInvalidInput, file + " is not an SQLite database; it was left unchanged",
              "name another file with --db, or move this one away"};
    case SQLITE_CORRUPT:
      return {ErrorKind::kInvalidInput, fmt::format("{} is damaged ({}); it was left unchanged", file, message),
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
          "its folder must exist, and you must be allowed to read it, and to write to it where the file is written");
    case SQLITE_IOERR:
      return infrastructure(fmt::format("the disk failed or is full ({}); what was stored before is safe", message),
                            "check the disk and its free space, then run the same command again");
    default:
      return {ErrorKind::kInternal, fmt::format("{}: SQLite: {}", file, message)};
  }
}

// Returns whether there is a rollback journal that was on the disk before the file was written to.
bool HasHotJournal(const std::string& file) {
  constexpr std::string_view kMagic = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7";
  std::ifstream in(file + "-journal", std::ios::binary);
  std::array<char, kMagic.size()> begin{};
  in.read(begin.data(), begin.size());
  return std::string_view(begin.data(), static_cast<size_t>(in.gcount())) == kMagic;
}

// SQLite opens whatever is there and waits: for the other end of a FIFO, or for a device. It also opens the files
// beside it by itself.
void RequireRegular(const std::string& file) {
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
    struct stat info {};
    if (::stat((file + suffix).c_str(), &info) != 0 || S_ISREG(info.st_mode)) continue;
    throw Error(ErrorKind::kInvalidInput,
                fmt::format("{}{} is not a regular file; it was left unchanged", file, suffix),
                "name another file with --db, or move this one away");
  }
}

constexpr int kHeaderBytes = 100;
constexpr std::string_view kMagic("SQLite format 3\0", 16);

// The beginning of an open database, and its size. Is read through SQLite: closing a file of our own would release all
// locks that this process has on it (fcntl(2), "Record locking and file descriptors").
struct Header {
  std::array<char, kHeaderBytes> bytes{};
  int64_t file_size = 0;

  uint64_t BigEndian(size_t at, size_t count) const {
    uint64_t value = 0;
    for (size_t i = 0; i < count; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
    return value;
  }
  bool has_write_ahead_log() const { return file_size >= kHeaderBytes && bytes[18] == 2; }
};

Header HeaderOf(sqlite3* handle, const std::string& name) {
  Header header;
  struct stat info {};
  if (::stat(name.c_str(), &info) != 0) return header;  // SQLite itself takes a file of one byte for an empty one
  sqlite3_file* file = nullptr;
  if (sqlite3_file_control(handle, "main", SQLITE_FCNTL_FILE_POINTER, static_cast<void*>(&file)) != SQLITE_OK ||
      file == nullptr || file->pMethods == nullptr) {
    return header;
  }
  const int code = file->pMethods->xRead(file, header.bytes.data(), kHeaderBytes, 0);
  if (code == SQLITE_OK || code == SQLITE_IOERR_SHORT_READ) header.file_size = info.st_size;
  return header;
}

// Checks two things that SQLite misses. It takes a file shorter than a page for a new database, and would overwrite it.
// And it does not notice that the end of the last page is missing.
void RequireWhole(sqlite3* handle, const std::string& file) {
  if (HasHotJournal(file)) return;  // a change was cut off; SQLite undoes it before it reads
  const Header header = HeaderOf(handle, file);
  if (header.file_size == 0) return;  // missing, empty or unreadable: SQLite reports it
  if (header.file_size < kHeaderBytes ||
      !std::string_view(header.bytes.data(), header.bytes.size()).starts_with(kMagic)) {
    throw Translated(SQLITE_NOTADB, "", file);
  }
  const uint64_t page_bytes = header.BigEndian(16, 2) == 1 ? 65536 : header.BigEndian(16, 2);
  std::error_code error;
  const bool has_log = std::filesystem::file_size(file + "-wal", error) > 0 && !error;  // it may hold the rest
  if (!has_log && static_cast<uint64_t>(header.file_size) < page_bytes * header.BigEndian(28, 4)) {
    throw Translated(SQLITE_CORRUPT, "it is cut short", file);
  }
}

FileStamp StampOf(const std::string& file) {
  struct stat info {};
  struct stat log {};
  if (::stat(file.c_str(), &info) != 0) return {};
  if (::stat((file + "-wal").c_str(), &log) != 0) log.st_size = 0;
  return {info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec, info.st_size, info.st_ino, log.st_size};
}

std::string FolderOf(const std::string& file) { return std::filesystem::absolute(file).parent_path().string(); }

// Throws if a reader of a file with a write-ahead log lacks what SQLite needs but could not name. SQLite needs the log
// and its index, and makes the index if it is missing (sqlite.org/wal.html, "Read-Only Databases"). Returns true if the
// reader can do without, because there is no log and thus no writer.
bool IsToBeReadAsUnchanging(const std::string& file) {
  const auto is_there = [&](const char* suffix) { return ::access((file + suffix).c_str(), F_OK) == 0; };
  std::error_code error;
  const bool has_log = is_there("-wal") && (std::filesystem::file_size(file + "-wal", error) > 0 || error);
  for (const char* suffix : {"-wal", "-shm"}) {
    if (!has_log || !is_there(suffix) || ::access((file + suffix).c_str(), R_OK) == 0) continue;
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("{} cannot be read without {}{}, which you may not read", file, file, suffix),
                "ask its owner to let you read it, or for a copy: `ridgeline db backup --to FILE`");
  }
  if (is_there("-shm") || ::access(FolderOf(file).c_str(), W_OK) == 0) return false;
  if (!has_log) return true;
  throw Error(
      ErrorKind::kInfrastructure,
      fmt::format("{0} has changes in {0}-wal, which can only be read where its folder can be written to", file),
      "run any command on it from a place that may write it, such as `ridgeline db check`, or copy it: `ridgeline db "
      "backup --to FILE`");
}

// A URI with which SQLite opens the file without locks and without a log.
std::string UnchangingUri(const std::string& file) {
  std::string uri = "file:";
  for (const char c : file) {
    const bool is_plain = c == '/' || c == '.' || c == '-' || c == '_' || (c >= '0' && c <= '9') ||
                          (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    uri += is_plain ? std::string(1, c) : fmt::format("%{:02x}", static_cast<unsigned char>(c));
  }
  return uri + "?immutable=1";
}

// Calls `work`, and translates SQLiteCpp's exceptions.
template <typename Work>
auto Guard(const std::string& file, Work work) {
  try {
    return work();
  } catch (const SQLite::Exception& e) {
    throw Translated(e.getExtendedErrorCode(), e.what(), file);
  }
}

// What a person's statement may do: read, call functions, and ask about columns.
int AuthorizeReading(void*, int action, const char* first, const char* second, const char*, const char*) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    case SQLITE_FUNCTION:
      return second != nullptr && std::string_view(second) == "load_extension" ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_UPDATE:  // asked when json_each is declared; SQLite itself refuses a real update
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

// Keeps the authorizer set while it lives, because SQLite may prepare a statement again when another process changes
// the schema. The same holds for the limit of a value's length: one function call can make a value of any length, and
// the clock is not checked meanwhile.
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

// Limits the time of a person's question, also in a program that may write.
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

// How long this thread has run on a core.
std::chrono::nanoseconds ThreadTime() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

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

// What a connection is asked now, and the limits of its questions.
struct Questioning {
  std::string file;
  Patience patience;
  std::chrono::steady_clock::time_point since = {};  // when the wait for a lock began
  bool said = false;
  // When the current call of SQLite began, in the thread's time on a core: a question must not fail because others use
  // the machine.
  std::chrono::nanoseconds began = ThreadTime();
  bool is_timed = false;                     // that call may take at most `longest_look`
  std::optional<FileStamp> unchanging = {};  // the state of the file, if SQLite was told that it does not change

  // SQLite's progress handler. Returns whether to stop.
  static int IsTooLong(void* context) {
    const auto& self = *static_cast<Questioning*>(context);
    return self.is_timed && ThreadTime() - self.began > self.patience.longest_look ? 1 : 0;
  }

  // SQLite's busy handler. Sleeps, and returns whether to try again. `tries` begins with 0 at each wait.
  static int Wait(void* context, int tries) {
    auto& self = *static_cast<Questioning*>(context);
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

  void RequireUnchanged() const {
    if (!unchanging || unchanging == StampOf(file)) return;
    throw Error(ErrorKind::kInfrastructure, fmt::format("{} was written to while it was read", file),
                "ask again; where its folder can be written to, readers need not do so");
  }
};

Statement::Statement(std::unique_ptr<SQLite::Statement> statement, std::string file, Questioning& questioning)
    : statement_(std::move(statement)), file_(std::move(file)), questioning_(&questioning) {}
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
  questioning_->began = ThreadTime();
  const bool has_row = Guard(file_, [&] { return statement_->executeStep(); });
  questioning_->RequireUnchanged();
  return has_row;
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

Database::Database(const std::filesystem::path& file, Access access, Patience patience)
    : file_(file.string()), questioning_(new Questioning{.file = file_, .patience = std::move(patience)}) {
  const int flags = SQLite::OPEN_NOMUTEX | (access == Access::kReadOnly ? SQLite::OPEN_READONLY
                                                                        : SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  RequireRegular(file_);
  // Makes the file first. SQLite would make it with a mode that lets nobody else write, whatever the umask allows.
  // SQLite's logs take the file's mode and group.
  if (access == Access::kReadWrite) {
    const Fd made(::open(file_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  }
  Guard(file_, [&] {
    database_ = std::make_unique<SQLite::Database>(file_, flags);
    if (access == Access::kReadOnly && HeaderOf(database_->getHandle(), file_).has_write_ahead_log() &&
        IsToBeReadAsUnchanging(file_)) {
      questioning_->unchanging = StampOf(file_);
      database_ = std::make_unique<SQLite::Database>(UnchangingUri(file_), flags | SQLITE_OPEN_URI);
    }
    sqlite3* handle = database_->getHandle();
    RequireWhole(handle, file_);
    SetUp(*database_);
    questioning_->is_timed = access == Access::kReadOnly;
    database_->exec("SELECT count(*) FROM sqlite_master");
  });
  RequireWhole(database_->getHandle(), file_);  // if a change was undone, it was not checked before
}
Database::Database(Database&&) noexcept = default;
Database& Database::operator=(Database&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(questioning_, other.questioning_);
  std::swap(database_, other.database_);
  return *this;
}
Database::~Database() = default;

void Database::SetUp(SQLite::Database& connection) {
  sqlite3* handle = connection.getHandle();
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_busy_handler(handle, Questioning::Wait, questioning_.get());
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  constexpr int kInstructions = 100'000;  // of SQLite's machine, between two checks of the clock: about 1 ms
  sqlite3_progress_handler(handle, kInstructions, Questioning::IsTooLong, questioning_.get());
  connection.exec("PRAGMA foreign_keys = ON");
}

void Database::MoveToMemory() {
  Guard(file_, [&] {
    auto copy = std::make_unique<SQLite::Database>(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_NOMUTEX);
    if (SQLite::Backup(*copy, *database_).executeStep() != SQLITE_DONE) {
      throw Error(ErrorKind::kInfrastructure, file_ + " is locked by another process", "ask again");
    }
    SetUp(*copy);
    questioning_->RequireUnchanged();
    questioning_->unchanging.reset();
    database_ = std::move(copy);
  });
}

void Database::Execute(const std::string& sql) {
  questioning_->began = ThreadTime();
  Guard(file_, [&] { database_->exec(sql); });
  questioning_->RequireUnchanged();
}
Statement Database::Prepare(const std::string& sql) {
  return Guard(file_,
               [&] { return Statement(std::make_unique<SQLite::Statement>(*database_, sql), file_, *questioning_); });
}
int64_t Database::Integer(const std::string& sql) {
  Statement statement = Prepare(sql);
  return statement.Step() ? statement.Integer(0) : 0;
}
int64_t Database::Changes() const { return database_->getChanges(); }

void Database::ChooseJournal() {
  const std::string_view network = NetworkFileSystemOf(file_);
  Statement now = Prepare("PRAGMA journal_mode");
  const std::string wanted = network.empty() ? "wal" : "delete";
  const bool is_as_wanted = now.Step() && now.Text(0) == wanted;
  now.Reset();
  if (!is_as_wanted) Execute("PRAGMA journal_mode = " + wanted);
  // With a log, NORMAL is enough: a power cut may lose the last commits, and the jobs' own files still have their
  // content. Without FULL, a rollback journal may be useless after a power cut.
  Execute(network.empty() ? "PRAGMA synchronous = NORMAL" : "PRAGMA synchronous = FULL");
}

void Database::Begin() { Execute("BEGIN IMMEDIATE"); }
void Database::Commit() { Execute("COMMIT"); }
void Database::Rollback() noexcept {
  // A full disk makes SQLite roll back by itself. Then there is nothing left to do.
  if (sqlite3_get_autocommit(database_->getHandle()) == 0) database_->tryExec("ROLLBACK");
}

Table Database::Select(const std::string& sql, const std::map<std::string, std::string>& texts) {
  sqlite3* handle = database_->getHandle();
  const ReadingOnly guard(handle);
  const Timed timed(questioning_->is_timed);
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
  // The authorizer has refused writes. This refuses what it has no word for, such as BEGIN.
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
  const size_t most = questioning_->patience.most_answer_bytes;
  size_t bytes = 0;
  questioning_->began = ThreadTime();
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
  questioning_->RequireUnchanged();
  if (code == SQLITE_DONE) return table;
  // For example, a text that is not JSON, or a pragma behind a table's name.
  if (code == SQLITE_ERROR || code == SQLITE_AUTH || code == SQLITE_MISMATCH || code == SQLITE_TOOBIG) {
    throw Error(ErrorKind::kUsage, fmt::format("SQL: {}", sqlite3_errmsg(handle)));
  }
  throw Translated(sqlite3_extended_errcode(handle), sqlite3_errmsg(handle), file_);
}

}  // namespace ridgeline::store
