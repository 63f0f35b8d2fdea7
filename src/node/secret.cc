#include "node/secret.h"

#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "ridgeline/job_dir.h"

namespace ridgeline::node {
namespace {
namespace fs = std::filesystem;

std::string NewSecret() {
  std::array<unsigned char, 32> bytes;
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    ThrowErrno("the kernel gives no random numbers");
  }
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text + "\n";
}

}  // namespace

RanksSecret::RanksSecret(const fs::path& job_dir, bool makes_it) : file_(SecretFile(job_dir)), makes_it_(makes_it) {
  const char* given = std::getenv("RIDGELINE_SECRET_FILE");
  if (given == nullptr || *given == '\0') return;
  file_ = given;
  makes_it_ = false;
}

RanksSecret::~RanksSecret() {
  if (made_) ::unlink(file_.c_str());
}

std::string RanksSecret::File() {
  if (makes_it_ && !made_) {
    WritePrivateFile(file_, NewSecret());
    made_ = true;
  }
  return file_;
}

}  // namespace ridgeline::node
