#include "engine/comm/gloo/secret.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/secret_file.h"

namespace ridgeline::engine {
namespace {
namespace fs = std::filesystem;

constexpr off_t kLeastBytes = 32;
constexpr off_t kMostBytes = 4096;
constexpr const char* kHint =
    "RIDGELINE_SECRET_FILE names a file of 32 random bytes or more that its owner alone can read";

void StartLibrary() {
  static const int started = sodium_init();
  if (started < 0) throw Error(ErrorKind::kInfrastructure, "libsodium cannot be started: it gets no random numbers");
}

[[noreturn]] void Refuse(const fs::path& file, const std::string& why) {
  throw Error(ErrorKind::kInfrastructure, fmt::format("the ranks' secret {} {}", file.string(), why), kHint);
}

}  // namespace

std::optional<Secret> Secret::Read(const fs::path& file) {
  static_assert(sizeof Secret::key_ == crypto_auth_KEYBYTES && kMacBytes == crypto_auth_BYTES);
  StartLibrary();
  // O_NONBLOCK avoids waiting for a writer if the file is a pipe.
  const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0 && (errno == ENOENT || errno == ESTALE)) return std::nullopt;
  struct stat info {};
  if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0)
    ThrowErrno("cannot read the ranks' secret " + file.string(), kHint);
  if (!S_ISREG(info.st_mode)) Refuse(file, "is not a regular file");
  if (const std::string others = WhoElseKnows(info); !others.empty()) Refuse(file, others);
  if (info.st_size < kLeastBytes || info.st_size > kMostBytes) {
    Refuse(file, fmt::format("has {} bytes, and must have {} to {}", info.st_size, kLeastBytes, kMostBytes));
  }
  std::array<unsigned char, kMostBytes> bytes;
  const ssize_t count = ::read(fd.get(), bytes.data(), bytes.size());
  if (count != info.st_size) Refuse(file, "cannot be read whole");
  Secret secret;
  crypto_generichash(secret.key_.data(), secret.key_.size(), bytes.data(), static_cast<size_t>(count), nullptr, 0);
  sodium_memzero(bytes.data(), bytes.size());
  return secret;
}

Secret::Mac Secret::MacOf(std::string_view text) const {
  Mac mac;
  crypto_auth(reinterpret_cast<unsigned char*>(mac.data()), reinterpret_cast<const unsigned char*>(text.data()),
              text.size(), key_.data());
  return mac;
}

bool AreEqual(const Secret::Mac& a, const Secret::Mac& b) { return sodium_memcmp(a.data(), b.data(), a.size()) == 0; }

void FillRandomly(char* bytes, size_t count) {
  StartLibrary();
  randombytes_buf(bytes, count);
}

}  // namespace ridgeline::engine
