// The manifest of checkpoint files is read whole or refused. A manifest that is read, written and read again is the
// same. The files that it names are in its own folder.
#include "engine/train/manifest.h"

#include "base/json.h"
#include "ridgeline/sealed_json.h"
#include "tests/fuzz/fuzz.h"

namespace {

// A document gets its right checksum, which arbitrary bytes do not have.
std::string Sealed(std::string_view text) {
  std::string sealed(text);
  ridgeline::fuzz::Takes([&] {
    ridgeline::Json document = ridgeline::ParseJson(text, "the manifest");
    if (document.is_object()) document.erase(ridgeline::kChecksumKey);
    if (document.is_object() && !document.empty()) sealed = ridgeline::SealedText(document);
  });
  return sealed;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ridgeline;  // NOLINT(google-build-using-namespace): a program of one function
  static const fuzz::Folder folder;
  folder.Write(engine::kManifestName, Sealed(fuzz::TextOf(data, size)));
  const bool taken = fuzz::Takes([&] {
    const engine::Manifest manifest = engine::ReadManifest(folder.path());
    for (const engine::SavedFile& saved : manifest.files) {
      fuzz::Require((folder.path() / saved.name).parent_path() == folder.path(), "a file is in its folder");
    }
    const std::string text = engine::EncodeManifest(manifest);
    folder.Write(engine::kManifestName, text);
    fuzz::Require(engine::EncodeManifest(engine::ReadManifest(folder.path())) == text, "a manifest is read as written");
  });
  if (taken) fuzz::Takes([&] { engine::CheckWhole(engine::ReadManifest(folder.path()), folder.path()); });
  return 0;
}
