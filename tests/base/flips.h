// Tests records with one flipped bit, as a bad disk or wire produces: none may be read as another record.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>

namespace ridgeline::testing {

// The seed of this run's flips, which is printed. $RIDGELINE_FLIP_SEED repeats an earlier run.
inline uint32_t FlipSeed() {
  static const uint32_t seed = [] {
    const char* wanted = std::getenv("RIDGELINE_FLIP_SEED");
    const auto number = wanted != nullptr ? static_cast<uint32_t>(std::strtoul(wanted, nullptr, 10))
                                          : static_cast<uint32_t>(std::random_device()());
    std::printf("RIDGELINE_FLIP_SEED=%u\n", number);
    return number;
  }();
  return seed;
}

// The outcome of reading a record: its content or, beginning with "refused: ", why it was refused.
inline constexpr const char* kRefused = "refused: ";

// Flips `times` bits of `whole`, one at a time, and passes each text to `read`, which returns the outcome: a refusal in
// words, or the content of `whole`. A flip without meaning, such as in the spelling of a number's last digit, may keep
// the content.
inline void ExpectFlipsFound(const std::string& what, const std::string& whole, int times,
                             const std::function<std::string(const std::string& text)>& read) {
  std::mt19937 random(FlipSeed());
  const std::string says = read(whole);
  ASSERT_NE(says.substr(0, std::string(kRefused).size()), kRefused) << what << ": " << says;
  int refused = 0;
  for (int i = 0; i < times; ++i) {
    const size_t bit = std::uniform_int_distribution<size_t>(0, whole.size() * 8 - 1)(random);
    std::string text = whole;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
    const std::string became = read(text);
    if (became.starts_with(kRefused)) {
      EXPECT_GT(became.size(), std::string(kRefused).size()) << what << ": refused without a word";
      ++refused;
    } else {
      EXPECT_EQ(became, says) << what << ": bit " << bit << ", RIDGELINE_FLIP_SEED=" << FlipSeed();
    }
  }
  EXPECT_GT(refused, times / 2) << what << ": nothing looks";
}

}  // namespace ridgeline::testing
