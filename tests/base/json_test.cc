#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "ridgeline/json_fault.h"
#include "tests/base/temp_dir.h"

namespace ridgeline {
namespace {

using testing::HasSubstr;

// The Error that parsing `text` throws.
Error Refusal(const std::string& text) {
  try {
    ParseJson(text, "results/a.json");
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "accepted: " << text;
  return {ErrorKind::kInternal, ""};
}

TEST(Json, EqualDocumentsAreEqualText) {
  EXPECT_EQ(DumpJson(ParseJson(R"({"b": 1, "a": [true, null, 0.5]})", "x")),
            DumpJson(ParseJson(R"({"a":[true,null,0.5],"b":1})", "y")));
  EXPECT_EQ(DumpJson(ParseJson(R"({"b": 1, "a": 2})", "x")), R"({"a":2,"b":1})");
}

TEST(Json, RefusalsNameTheSourceAndThePlace) {
  const Error error = Refusal("{\"a\": 1,\n \"b\": }");
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidInput);
  EXPECT_THAT(error.message(), HasSubstr("results/a.json"));
  EXPECT_THAT(error.message(), HasSubstr("line 2"));
}

TEST(Json, RefusesWhatIsCutShortAnywhere) {
  const std::string whole = R"({"a": {"b": [1, 2, "three"]}, "c": -1.5e3, "d": true})";
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(Refusal(whole.substr(0, size)).kind(), ErrorKind::kInvalidInput) << size;
  }
  EXPECT_NO_THROW(ParseJson(whole, "whole"));
}

TEST(Json, AnEmptyFileGetsAHint) { EXPECT_THAT(Refusal("").hint(), HasSubstr("cut short")); }

TEST(Json, RefusesWhatFollowsTheDocument) {
  Refusal("{} {}");
  Refusal("1,");
  Refusal("{\"a\": 1}garbage");
}

TEST(Json, RefusesNumbersJsonDoesNotHave) {
  Refusal("NaN");
  Refusal("Infinity");
  Refusal("1e999");
  Refusal("01");
}

TEST(Json, RefusesBytesThatAreNotUtf8) { Refusal("\"\xff\xfe\""); }

// Walking through a document recurses once per level: a million levels would end the process.
TEST(Json, RefusesWhatIsNestedDeeperThanAnyDocument) {
  for (const char* brackets : {"[]", "{}"}) {
    const std::string open = brackets[0] == '[' ? "[" : "{\"é\":";
    const auto nested = [&](int depth) {
      std::string text;
      for (int i = 1; i < depth; ++i) text += open;
      return text + brackets + std::string(static_cast<size_t>(depth - 1), brackets[1]);
    };
    EXPECT_EQ(DumpJson(ParseJson(nested(kMaxJsonDepth), "x")), nested(kMaxJsonDepth));
    EXPECT_THAT(Refusal(nested(1'000'000)).message(), HasSubstr("more than 64 deep"));
  }
  Refusal(std::string(1'000'000, '['));
  // Brackets in a string are no nesting.
  const std::string text = "[\"é\\\"" + std::string(1000, '[') + "\"]";
  EXPECT_EQ(DumpJson(ParseJson(text, "x")), text);
}

TEST(Json, ARefusalIsNoLongerThanASentenceOrTwo) {
  EXPECT_LT(Refusal("\"" + std::string(1'000'000, 'x')).message().size(), 500U);
  EXPECT_LT(Refusal(std::string(1'000'000, '9') + "e999999").message().size(), 500U);
}

// The error when `read` reads `text`.
template <typename Read>
std::string Fault(const std::string& text, Read read) {
  try {
    read(Json::parse(text));
  } catch (const Json::exception& e) {
    return JsonFault(e);
  }
  return "none";
}

TEST(Json, AFaultIsSaidInWordsForPeople) {
  const auto nothing = [](const Json&) {};
  EXPECT_EQ(Fault(R"({"lr": 1e999})", nothing), "the number 1e999 is too large");
  EXPECT_EQ(Fault("{]", nothing), "']' cannot stand at line 1, column 2");
  EXPECT_EQ(Fault("{\n\"lr\": nan}", nothing), "it is malformed at line 2, column 8, at the end of '\"lr\": na'");
  EXPECT_EQ(Fault("[1, 2", nothing), "it ends too early, at line 1, column 6");
  EXPECT_EQ(Fault("", nothing), "it ends too early, at line 1, column 1");
  EXPECT_EQ(Fault("{\"lr\" 1}", nothing), "a number cannot stand at line 1, column 7");

  EXPECT_EQ(Fault(R"({"ranks": 1})", [](const Json& json) { (void)json.at("nodes"); }), "'nodes' is missing");
  EXPECT_EQ(Fault(R"({"ranks": "x"})", [](const Json& json) { (void)json.at("ranks").get<int>(); }),
            "it is a string where a number is expected");
  EXPECT_EQ(Fault("7", [](const Json& json) { (void)json.at("ranks"); }),
            "it is a number where a list or an object is expected");
  EXPECT_LE(Fault("\"" + std::string(1 << 20, 'x'), nothing).size(), 403U);
}

TEST(Json, KeepsEveryBitOfADouble) {
  for (const double value : {0.1, 1.0 / 3, 3e-4, 1e-5, 123456789.123456789, std::numeric_limits<double>::denorm_min(),
                             std::numeric_limits<double>::max(), std::numeric_limits<double>::epsilon()}) {
    EXPECT_EQ(ParseJson(DumpJson(value), "x").get<double>(), value);
  }
}

TEST(Json, KeepsLargeIntegers) {
  EXPECT_EQ(ParseJson("9223372036854775807", "x").get<int64_t>(), std::numeric_limits<int64_t>::max());
}

TEST(Json, DumpNeverThrows) {
  const std::string text = DumpJson(Json{{"log", "bad \xc3( byte \xff"}});
  EXPECT_THAT(text, HasSubstr("\xEF\xBF\xBD"));
  EXPECT_NO_THROW(ParseJson(text, "x"));
}

TEST(Json, DumpEscapesControlCharacters) {
  const std::string text = DumpJson(std::string("a\x1b[31m\n\0b", 9));
  for (const char c : text) EXPECT_GE(static_cast<unsigned char>(c), 0x20);
}

TEST(Json, IndentsOnRequest) { EXPECT_EQ(DumpJson(Json{{"a", 1}}, 2), "{\n  \"a\": 1\n}"); }

TEST(Json, ReadsAFileAndNamesTheOneThatIsMissing) {
  const TempDir dir;
  WriteFileAtomic(dir / "a.json", "{\"a\": [1]}");
  EXPECT_EQ(ReadJsonFile(dir / "a.json")["a"][0], 1);
  try {
    ReadJsonFile(dir / "b.json");
    FAIL() << "read a file that is not there";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInfrastructure);
    EXPECT_THAT(error.message(), HasSubstr((dir / "b.json").string()));
  }
}

TEST(Json, AFileWithoutEndIsRefused) {
  try {
    ReadJsonFile("/dev/zero");
    FAIL() << "it has an end";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidInput);
    EXPECT_THAT(error.message(), HasSubstr("/dev/zero is larger than 128 MiB"));
  }
}

}  // namespace
}  // namespace ridgeline
