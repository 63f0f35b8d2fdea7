// What the ranks of a job know and a stranger does not: the bytes of a file that `ridgeline exec` makes
// (node/secret.h), that a Kubernetes Secret brings to a job's pods, or that a person names.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string_view>

namespace ridgeline {

class Secret {
 public:
  static constexpr size_t kMacBytes = 32;
  using Mac = std::array<char, kMacBytes>;

  // Of ranks that were given none, and so may meet on the loopback interface alone: everybody knows it.
  Secret() = default;

  // Nothing where no file is there. Throws Error(kInfrastructure) where it cannot be read, where others than its owner
  // and its group can read it, or where it has fewer bytes than a secret needs.
  static std::optional<Secret> Read(const std::filesystem::path& file);

  // HMAC-SHA-512/256 of the text.
  Mac MacOf(std::string_view text) const;

 private:
  std::array<unsigned char, 32> key_{};
};

// Takes as long for any two.
bool AreEqual(const Secret::Mac& a, const Secret::Mac& b);

// Random bytes that nobody can foresee.
void FillRandomly(char* bytes, size_t count);

}  // namespace ridgeline
