// Safetensors files that together hold the tensors of one model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/train/safetensors.h"

namespace ridgeline::engine {

class TensorFiles {
 public:
  // Throws Error(kInvalidInput), naming a file that is no safetensors file, or a tensor that two of them hold.
  TensorFiles(const std::filesystem::path& folder, std::span<const std::string> names,
              ForeignFile::Links links = ForeignFile::Links::kRefused);

  struct Found {
    const SafetensorsFile* file;
    std::string file_name;
    std::string name;  // in the file
    const SafetensorsFile::Entry& entry() const { return file->Find(name); }
  };
  // Returns the tensor, with or without the `transformer.` that Hugging Face puts before gpt's names; nullptr if it is
  // missing.
  const Found* Find(const std::string& name) const;

  struct Wanted {
    std::string name;
    std::vector<int64_t> shape;
  };
  // Returns an empty text if they hold exactly these tensors, buffers aside. Else names one that is missing, has
  // another shape (with both), or is superfluous.
  std::string Difference(std::span<const Wanted> wanted) const;

 private:
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, Found, std::less<>> found_;  // by their names without `transformer.`
};

}  // namespace ridgeline::engine
