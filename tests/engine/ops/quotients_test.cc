// The quotients of the nvfp4 kernels, which are computed as products with inverses.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

namespace ridgeline::engine {
namespace {

// Divides as the kernels do (codes_nv-inl.h). For each divisor d it tries the dividends whose quotients are nearest to
// the middle of two numbers, n / (2 d) units in the last place away. The product with an inverse is at most 1.5 units
// off, which leaves an error below 3 / (2 d).
TEST(Quotients, CorrectedProductsAreRoundedOnce) {
  for (uint32_t d = (1U << 23) + 1; d < 1U << 24;
       d += 18) {  // odd divisors: the quotients of even ones are farther away
    const auto divisor = static_cast<float>(d);
    const float inverse = 1 / divisor;
    uint32_t modular = d;  // its inverse modulo 2^32, by Newton's method
    for (int i = 0; i < 4; ++i) modular *= 2 - d * modular;
    for (const int n : {-3, -1, 1, 3}) {
      for (const int shift : {24, 25}) {  // middle * d + n = dividend * 2^shift, with an odd middle of 25 bits
        const uint32_t mask = (1U << shift) - 1;
        const uint64_t middle = (static_cast<uint32_t>(-n) * modular & mask) | (1U << 24);
        const auto product = static_cast<uint64_t>(static_cast<int64_t>(middle * d) + n);
        const uint64_t dividend = product >> shift;
        if ((product & mask) != 0 || dividend < 1U << 23 || dividend >= 1U << 24) continue;
        const auto x = static_cast<float>(dividend);
        const float near = x * inverse;
        ASSERT_EQ(std::fma(-std::fma(near, divisor, -x), inverse, near), x / divisor) << x << " / " << d;
      }
    }
  }
}

}  // namespace
}  // namespace ridgeline::engine
