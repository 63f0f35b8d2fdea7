// The fast parser agrees with nlohmann's, or declines.
#include "base/plain_json.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "base/json.h"

namespace ridgeline {
namespace {

// True if the fast parser accepted the text. Then it must be JSON, with the same value of the same type.
bool TakesRightly(const std::string& text) {
  Json quick;
  if (!ParsePlainJson(text, quick)) return false;
  const Json exact = Json::parse(text, nullptr, false);
  EXPECT_FALSE(exact.is_discarded()) << text;
  EXPECT_EQ(quick, exact) << text;
  EXPECT_EQ(quick.type(), exact.type()) << text;
  EXPECT_EQ(quick.dump(-1, ' ', false, Json::error_handler_t::replace), exact.dump()) << text;
  return true;
}

TEST(PlainJson, TakesWhatProgramsWrite) {
  for (const char* text : {"{}",
                           "[]",
                           " [ ] ",
                           "{ }",
                           "true",
                           "false",
                           "null",
                           "0",
                           "-0",
                           "7",
                           "-7",
                           "18446744073709551615",
                           "-9223372036854775808",
                           "0.1",
                           "-1.5e3",
                           "1E-5",
                           "2e+10",
                           "\"\"",
                           R"("a \"b\" \\ \/ \b\f\n\r\t")",
                           R"({"a": {"b": [1, 2.5, "three", null, true]}, "c": -1e3})",
                           "{\"b\":1,\"a\":2,\"a\":3}",
                           "[[[[1]]],\n\t{\"x\" : [ ] }\r\n]",
                           "4.9e-324",
                           "1.7976931348623157e308"}) {
    EXPECT_TRUE(TakesRightly(text)) << text;
  }
}

TEST(PlainJson, PassesOnEverythingElse) {
  for (const char* text : {"",
                           " ",
                           "{",
                           "[",
                           "\"",
                           "{\"a\"",
                           "{\"a\":",
                           "{\"a\":1",
                           "{\"a\":1,}",
                           "[1,]",
                           "[1 2]",
                           "{\"a\" 1}",
                           "{a:1}",
                           "{'a':1}",
                           "01",
                           "-",
                           "+1",
                           ".5",
                           "1.",
                           "1e",
                           "1e+",
                           "--1",
                           "NaN",
                           "Infinity",
                           "-Infinity",
                           "nan",
                           "0x10",
                           "1e999",
                           "18446744073709551616",
                           "-9223372036854775809",
                           "tru",
                           "nulll",
                           "{} {}",
                           "1,",
                           "\"\\u0041\"",
                           "\"\\x\"",
                           "\"\\",
                           "\"caf\xc3\xa9\"",
                           "\"\xff\"",
                           "\"tab\there\"",
                           "\"del\x7f\"",
                           "// c\n1",
                           "\xef\xbb\xbf{}"}) {
    EXPECT_FALSE(TakesRightly(text)) << text;
  }
  EXPECT_FALSE(TakesRightly(std::string("\"a\0b\"", 5)));
  EXPECT_FALSE(TakesRightly(std::string(100'000, '[')));
}

TEST(PlainJson, AgreesOnMutatedDocuments) {
  const std::string whole =
      R"({"evidence": {"exit_code": "0"}, "loss": [9.5, null, -1.25e-3], "n": -12, "s": "a\"\\\n", "t": [true, false]})";
  const std::string alphabet = "{}[]\":,\\ \n0123456789.eE+-truefalsn\x01\x80";
  std::mt19937 random(7);
  int taken = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = whole;
    for (unsigned edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % text.size();
      if (random() % 2 == 0) {
        text[at] = alphabet[random() % alphabet.size()];
      } else {
        text.erase(at, 1);
      }
    }
    taken += static_cast<int>(TakesRightly(text));
  }
  EXPECT_GT(taken, 1000);
}

}  // namespace
}  // namespace ridgeline
