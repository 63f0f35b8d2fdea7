// What comes from AWS and from ~/.aws: an answer about jobs or their log is accepted, or refused with an exception of
// the JSON library; an archive of output is read, or refused with a Failure; a profile has keys, or none.
#include "sagemaker/judge.h"

#include "sagemaker/credentials.h"
#include "sagemaker/output.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ridgeline::sagemaker;  // NOLINT(google-build-using-namespace): a program of one function
  namespace plugin = ridgeline::plugin;
  const std::string text(ridgeline::fuzz::TextOf(data, size));
  if (const auto keys = KeysOfProfile(text, "default")) {
    ridgeline::fuzz::Require(!keys->key_id.empty() && !keys->secret.empty(), "keys are not empty");
  }
  try {
    LinesOfArchive(text);
  } catch (const plugin::Failure&) {
    // The text is no such archive.
  }
  try {
    const plugin::Json document = plugin::Json::parse(text);
    for (const auto parse :
         {+[](const plugin::Json& any) { ParseRows(any); }, +[](const plugin::Json& any) { ParseLogPage(any); },
          +[](const plugin::Json& any) { Judge({}, ParseJob(any)); }}) {
      try {
        parse(document);
      } catch (const plugin::Json::exception&) {
        // The text is no such description.
      }
    }
  } catch (const plugin::Json::exception&) {
    // The text is no JSON.
  }
  return 0;
}
