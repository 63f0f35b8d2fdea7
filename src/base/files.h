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

// Reads a file of the user or the system. Throws Error(kInfrastructure), which names the path.
std::string ReadFile(const std::filesystem::path& path);

// The same; nothing if there is no file. A single operation, so that it is no error if others create and remove the
// file meanwhile. Reads at most `most` bytes.
std::optional<std::string> ReadFileIfThere(const std::filesystem::path& path, size_t most = SIZE_MAX);

// Reads a file that a trainer or a job may have made (ridgeline/foreign_file.h); nothing if there is none. Throws
// Error(kInvalidInput) if it is no regular file or has more bytes, and Error(kInfrastructure) if it cannot be read.
std::optional<std::string> ReadForeignFile(const std::filesystem::path& path, size_t max_bytes,
                                           ForeignFile::Links links = ForeignFile::Links::kRefused);
// Throws the reason why it was not read as such an error.
[[noreturn]] void ThrowUnread(const ForeignFile& file);

// When it was last written, as Unix time; 0 if there is no such file.
int64_t ModifiedUnixNs(const std::filesystem::path& path);

// The last `max_bytes` of such a file; empty if it is no regular file, or cannot be read.
std::string ReadTail(const std::filesystem::path& path, size_t max_bytes);
// The same for a log, for people: if the system does not let it be read, a line in brackets says why.
std::string ReadLogTail(const std::filesystem::path& path, size_t max_bytes);

// Files created here may be read and written by all, subject to the umask.

// Whether `path` is a device, such as /dev/null or /dev/stdout. Devices are written to, never replaced by a file: if
// root replaced one, all programs of the machine would lose it.
bool IsDevice(const std::filesystem::path& path);

// Writes a temporary file beside `path`, syncs it, renames it over `path` and syncs the folder. So after a crash at any
// moment, `path` holds the old bytes or the new ones. Throws Error(kInfrastructure), and then removes the temporary
// file.
void WriteFileAtomic(const std::filesystem::path& path, std::string_view bytes);

// The same without syncing: readers find the old bytes or the new ones, and only a crash of the machine may leave less.
// For files that can be made again, and whose damage is noticed.
void WriteFile(const std::filesystem::path& path, std::string_view bytes);

// The same as WriteFile, but only the owner can read the file, from its first moment. For secrets.
void WritePrivateFile(const std::filesystem::path& path, std::string_view bytes);

// Overwrites the file in place, so a reader may find less. Only for a file that cannot be replaced, such as one that is
// mounted by itself. Throws Error(kInfrastructure).
void OverwriteFile(const std::filesystem::path& path, std::string_view bytes);

// A descriptor, closed at the end of its scope; release() gives it up.
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

// Writes all of it to an open file, `path`. Throws Error(kInfrastructure), which names the path.
void WriteAll(int fd, std::string_view bytes, const std::filesystem::path& path);

// A new file, written from front to back in parts.
class FileWriter {
 public:
  // Throws Error(kInfrastructure) if a file of that name exists; so do the other functions if the disk fails.
  explicit FileWriter(std::filesystem::path path);
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  ~FileWriter();
  void Append(std::string_view bytes);
  void Sync();  // on return, the appended bytes are on the disk

 private:
  std::filesystem::path path_;
  int fd_;
};

// Writes a new file with this text. It is on the disk on return. Throws as FileWriter.
void WriteSynced(const std::filesystem::path& path, std::string_view text);

// Reads a file at any position. Others may have made it.
class FileReader {
 public:
  // Throws Error(kInvalidInput), which names the path, if it is no regular file, else Error(kInfrastructure). So does
  // ReadAt, also if the file ends earlier.
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

// Makes creations, renames and removals in the folder survive a crash. Throws Error(kInfrastructure).
void SyncFolder(const std::filesystem::path& path);

// Makes the folder and its parents. Throws Error(kInfrastructure), which names the path.
void MakeDirs(const std::filesystem::path& path);

// An exclusive advisory lock (flock) on a regular file, which is created if missing, and never through a link. Released
// by the destructor, or by any end of the process. A child inherits it if it inherits the descriptor.
class FileLock {
 public:
  // Returns nothing if another process holds it. A holder may remove the file. Throws Error(kInfrastructure) if the
  // file cannot be opened, or is no regular file.
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

// The running program's file, also if a loader was started with the program as its argument.
std::filesystem::path ProgramFile();
// The folder that holds the running program, and the installed or build tree's data folder for `name` ("plugins",
// "reports", "sweeps", "docs"): $RIDGELINE_HOME/NAME, else beside the program (build tree), else
// ../lib|share/ridgeline/NAME.
std::filesystem::path ProgramDir();
// Throws Error(kInfrastructure) if it is not found; FindDataDir then returns nothing.
std::filesystem::path DataDir(const std::string& name);
std::optional<std::filesystem::path> FindDataDir(const std::string& name);

}  // namespace ridgeline
