#include "engine/device/cpu/cpu_class.h"

#include <hwy/targets.h>

#include <array>
#include <cstdlib>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

#ifdef __x86_64__
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace ridgeline::engine {
namespace {

constexpr std::array<std::pair<CpuClass, std::string_view>, 5> kNames = {{{CpuClass::kBaseline, "baseline"},
                                                                          {CpuClass::kAvx2, "avx2"},
                                                                          {CpuClass::kAvx512, "avx512"},
                                                                          {CpuClass::kAvx512Bf16, "avx512_bf16"},
                                                                          {CpuClass::kAmx, "amx"}}};

#ifdef __x86_64__
// Highway detects AVX2 and AVX-512 (the operating system must save the registers, too). bf16 and AMX are bits of CPUID
// (Intel's manual, volume 2A, leaf 7), and Linux grants AMX's large registers only on request.
bool HasAvx512Bf16() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax >> 5 & 1U) != 0;
}

bool HasAmx() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  const bool tiles_of_bf16 = (edx >> 22 & 1U) != 0 && (edx >> 24 & 1U) != 0;
  return tiles_of_bf16 && ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

CpuClass LargestClass() {
  const int64_t targets = hwy::SupportedTargets();
  if ((targets & HWY_AVX2) == 0) return CpuClass::kBaseline;
  if ((targets & HWY_AVX3) == 0) return CpuClass::kAvx2;
  if (!HasAvx512Bf16()) return CpuClass::kAvx512;
  return HasAmx() ? CpuClass::kAmx : CpuClass::kAvx512Bf16;
}

constexpr int64_t kFromAvx512 = HWY_AVX3 | (HWY_AVX3 - 1);  // a better target has a lower bit
constexpr int64_t kFromAvx2 = HWY_AVX2 | (HWY_AVX2 - 1);

void LimitHighway(CpuClass to) {
  if (to < CpuClass::kAvx2) {
    hwy::DisableTargets(kFromAvx2);
  } else if (to < CpuClass::kAvx512) {
    hwy::DisableTargets(kFromAvx512);
  }
}
#else
CpuClass LargestClass() { return CpuClass::kBaseline; }
void LimitHighway(CpuClass) {}
#endif

CpuClass ChosenClass() {
  const CpuClass largest = LargestClass();
  const char* wanted = std::getenv("RIDGELINE_CPU_CLASS");
  if (wanted == nullptr || *wanted == '\0') return largest;
  for (const auto& [cpu_class, name] : kNames) {
    if (name != wanted) continue;
    if (cpu_class > largest) {
      throw Error(ErrorKind::kInvalidInput,
                  fmt::format("RIDGELINE_CPU_CLASS is {}, and this CPU's class is {}", name, CpuClassName(largest)),
                  "name a class that the CPU has, or unset the variable");
    }
    LimitHighway(cpu_class);
    return cpu_class;
  }
  std::string names;
  for (const auto& [cpu_class, name] : kNames) names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  throw Error(ErrorKind::kInvalidInput, fmt::format("RIDGELINE_CPU_CLASS is not a class of CPU: '{}'", wanted),
              "classes are " + names);
}

}  // namespace

std::string_view CpuClassName(CpuClass cpu_class) {
  for (const auto& [named, name] : kNames) {
    if (named == cpu_class) return name;
  }
  return "unknown";
}

CpuClass ThisCpuClass() {
  static const CpuClass chosen = ChosenClass();
  return chosen;
}

}  // namespace ridgeline::engine
