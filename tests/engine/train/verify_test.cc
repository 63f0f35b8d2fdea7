#include "engine/train/verify.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "engine/train/safetensors.h"

namespace ridgeline::engine {
namespace {

namespace fs = std::filesystem;
const fs::path kCases = fs::path(RIDGELINE_SOURCE_DIR) / "tests/engine/cases";

std::vector<fs::path> Cases() {
  std::vector<fs::path> cases;
  for (const auto& entry : fs::directory_iterator(kCases)) {
    if (entry.path().extension() == ".json") cases.push_back(entry.path());
  }
  return cases;
}

void ExpectVerified(const VerifyReport& report) {
  for (const VerifyLine& line : report.lines) {
    EXPECT_TRUE(line.ok()) << report.name << ": " << line.what << " is off by " << line.error << ", bound "
                           << line.bound;
  }
}

TEST(Verify, EveryCaseInFp32UnderEveryPolicy) {
  ASSERT_GE(Cases().size(), 3U);
  for (const fs::path& path : Cases()) {
    for (const char* policy : {"none", "selective", "full"}) ExpectVerified(Verify(path, {"fp32", policy}));
  }
}

TEST(Verify, EveryCaseInTf32) {
  for (const fs::path& path : Cases()) ExpectVerified(Verify(path, {"tf32", "none"}));
}

TEST(Verify, EveryCaseInBf16) {
  for (const fs::path& path : Cases()) ExpectVerified(Verify(path, {"bf16", "none"}));
}

TEST(Verify, EveryCaseInFp16) {
  for (const fs::path& path : Cases()) ExpectVerified(Verify(path, {"fp16", "none"}));
}

TEST(Verify, AWrongLossIsFound) {
  const fs::path dir = fs::temp_directory_path() / ("verify." + std::to_string(::getpid()));
  fs::create_directories(dir);
  Json document = ReadJsonFile(kCases / "llama-tiny.json");
  document["losses"][3] = document["losses"][3].get<double>() * 1.001;
  WriteFileAtomic(dir / "wrong.json", document.dump());
  fs::copy_file(kCases / "llama-tiny.safetensors", dir / "wrong.safetensors");
  const VerifyReport report = Verify(dir / "wrong.json", {"fp32", "none"});
  EXPECT_FALSE(report.ok());

  fs::resize_file(dir / "wrong.safetensors", 5000);
  EXPECT_THROW(Verify(dir / "wrong.json", {"fp32", "none"}), Error);
  document.erase("optimizer");
  WriteFileAtomic(dir / "wrong.json", document.dump());
  EXPECT_THROW(Verify(dir / "wrong.json", {"fp32", "none"}), Error);
  fs::remove_all(dir);
}

TEST(Verify, AWrongLogitIsFound) {
  const fs::path dir = fs::temp_directory_path() / ("verify-logit." + std::to_string(::getpid()));
  fs::create_directories(dir);
  fs::copy_file(kCases / "gpt-tiny.json", dir / "wrong.json");
  std::string bytes = ReadFile(kCases / "gpt-tiny.safetensors");
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), sizeof header_bytes);
  const SafetensorsFile tensors(kCases / "gpt-tiny.safetensors");
  const size_t last =
      sizeof header_bytes + header_bytes + static_cast<size_t>(tensors.Find("logits").end) - sizeof(float);
  float logit = 0;
  std::memcpy(&logit, bytes.data() + last, sizeof logit);
  logit += 1e-3F;
  std::memcpy(bytes.data() + last, &logit, sizeof logit);
  WriteFileAtomic(dir / "wrong.safetensors", bytes);
  for (const VerifyLine& line : Verify(dir / "wrong.json", {"fp32", "none"}).lines) {
    EXPECT_EQ(line.ok(), line.what != "logits") << line.what;
  }
  fs::remove_all(dir);
}

}  // namespace
}  // namespace ridgeline::engine
