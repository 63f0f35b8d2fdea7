// Files: whole reads, atomic writes, locks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "ridgeline/foreign_file.h"

namespace ridgeline {

// A file that is a person's, or the system's. Throws Error(kInfrastructure) naming the path.
std::string ReadFile(const std::filesystem::path& path);

// The same; nothing where no file is there. One question, so a file that others make and remove meanwhile is no error.
// No more than `most` bytes are read.
std::optional<std::string> ReadFileIfThere(const std::filesystem::path& path, size_t most = SIZE_MAX);

// A file that a trainer or a job may have made (ridgeline/foreign_file.h); nothing where none is there. Throws
// Error(kInvalidInput) where it is no regular file or has more bytes, Error(kInfrastructure) where it cannot be read.
std::optional<std::string> ReadForeignFile(const std::filesystem::path& path, size_t max_bytes,
                                           ForeignFile::Links links = ForeignFile::Links::kRefused);
// Why it was not read, as such an error.
[[noreturn]] void ThrowUnread(const ForeignFile& file);

// When it was last written to, as Unix time; 0 where there is no such file.
int64_t ModifiedUnixNs(const std::filesystem::path& path);

// The last `max_bytes` of such a file; empty where it is no regular file, or cannot be read.
std::string ReadTail(const std::filesystem::path& path, size_t max_bytes);
// The same of a log, for people: where the system does not let it be read, a line in brackets says why.
std::string ReadLogTail(const std::filesystem::path& path, size_t max_bytes);

// What is made here is for all to read and to write, less what the umask takes away.

// Whether `path` is a device, such as /dev/null and /dev/stdout. It is written to, never replaced by a file: for root,
// replacing would take it from all programs of the machine.
bool IsDevice(const std::filesystem::path& path);

// Writes a temporary file beside `path`, syncs it, renames it over `path` and syncs the folder: after a crash at any
// moment `path` holds the old bytes or the new ones. Throws Error(kInfrastructure); the temporary is removed.
void WriteFileAtomic(const std::filesystem::path& path, std::string_view bytes);

// The same without syncing: who reads `path` meanwhile finds the old bytes or the new ones, and only a machine that
// goes down may leave less. For what can be made again, and shows by itself when it is not whole.
void WriteFile(const std::filesystem::path& path, std::string_view bytes);

// The same as WriteFile, for its owner alone to read from its first moment: what holds a secret.
void WritePrivateFile(const std::filesystem::path& path, std::string_view bytes);

// Writes over what is there, in place, so that a reader may find less: only for a file that cannot be replaced, as one
// that is mounted by itself. Throws Error(kInfrastructure).
void OverwriteFile(const std::filesystem::path& path, std::string_view bytes);

// A descriptor, closed on scope exit; release() hands it over.
class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd();
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// Writes all of it to an open file, `path`. Throws Error(kInfrastructure) naming that.
void WriteAll(int fd, std::string_view bytes, const std::filesystem::path& path);

// A new file, written from front to back in parts.
class FileWriter {
 public:
  // Throws Error(kInfrastructure) where there is one of that name already; so do the others where the disk fails.
  explicit FileWriter(std::filesystem::path path);
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  ~FileWriter();
  void Append(std::string_view bytes);
  void Sync();  // what was appended is on the disk

 private:
  std::filesystem::path path_;
  int fd_;
};

// A new file of this text, on the disk when it returns. Throws as FileWriter does.
void WriteSynced(const std::filesystem::path& path, std::string_view text);

// A file read anywhere in it, that others may have made.
class FileReader {
 public:
  // Throws Error(kInvalidInput) naming the path where it is no regular file, else Error(kInfrastructure); so does
  // ReadAt, also where the file ends before.
  explicit FileReader(std::filesystem::path path, ForeignFile::Links links = ForeignFile::Links::kRefused);
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;
  ~FileReader();
  int64_t size() const { return size_; }
  void ReadAt(int64_t offset, std::span<char> to) const;

 private:
  std::filesystem::path path_;
  int fd_ = -1;
  int64_t size_ = 0;
};

// What was made, renamed or removed in the folder stays so after a crash. Throws Error(kInfrastructure).
void SyncFolder(const std::filesystem::path& path);

// Makes the folder and its parents. Throws Error(kInfrastructure) naming the path.
void MakeDirs(const std::filesystem::path& path);

// An exclusive advisory lock (flock) on a regular file, created where it is missing, and never through a link. Released
// by the destructor or the process's end, whichever way it ends. A child inherits it where the descriptor is inherited.
class FileLock {
 public:
  // Nothing where another process holds it. Throws Error(kInfrastructure) where the file cannot be opened, or is none.
  static std::optional<FileLock> Try(const std::filesystem::path& path);

  FileLock(FileLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  FileLock& operator=(FileLock&& other) noexcept;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

  int fd() const { return fd_; }  // close-on-exec is set

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
};

// The running program's file, also where a loader was started with the program as its argument.
std::filesystem::path ProgramFile();
// The folder that holds the running program, and the installed or build tree's data folder for `name` ("plugins",
// "reports", "sweeps", "docs"): $RIDGELINE_HOME/NAME, else beside the program (build tree), else
// ../lib|share/ridgeline/NAME.
std::filesystem::path ProgramDir();
// Throws Error(kInfrastructure) where it is nowhere; FindDataDir has nothing then.
std::filesystem::path DataDir(const std::string& name);
std::optional<std::filesystem::path> FindDataDir(const std::string& name);

}  // namespace ridgeline
