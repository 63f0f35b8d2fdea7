// The secret that the ranks of a job share and strangers do not know: the bytes of a file that `ridgeline exec` makes
// (node/secret.h), that a Kubernetes Secret brings to a job's pods, or that a person names.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string_view>

namespace ridgeline::engine {

class Secret {
 public:
  static constexpr size_t kMacBytes = 32;
  using Mac = std::array<char, kMacBytes>;

  // For ranks that were given no secret, and so may meet only on the loopback interface: everybody knows this one.
  Secret() = default;

  // Returns nothing if the file does not exist. Throws Error(kInfrastructure) if it cannot be read, if others than its
  // owner and its group can read it, or if it has fewer bytes than a secret needs.
  static std::optional<Secret> Read(const std::filesystem::path& file);

  // HMAC-SHA-512/256 of the text.
  Mac MacOf(std::string_view text) const;

 private:
  std::array<unsigned char, 32> key_{};
};

// Takes equally long for any two.
bool AreEqual(const Secret::Mac& a, const Secret::Mac& b);

// Fills with random bytes that nobody can foresee.
void FillRandomly(char* bytes, size_t count);

}  // namespace ridgeline::engine
