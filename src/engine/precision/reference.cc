#include "engine/precision/reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace ridgeline::engine {
namespace {

constexpr float kMaxE2M1 = InfoOf(Format::kE2M1).max;

// Returns the larger magnitude; a NaN counts as larger than all.
float MaxAbs(float amax, float x) {
  if (std::isnan(amax)) return amax;
  const float magnitude = std::abs(x);
  return std::isnan(magnitude) || magnitude > amax ? magnitude : amax;
}

uint8_t E8M0Scale(const Quantizer& quantizer, float amax) {
  const FormatInfo info = InfoOf(quantizer.format);
  const float largest = quantizer.scale_rule == ScaleRule::kRoundUp ? info.max : std::ldexp(1.0F, info.max_exponent);
  return EncodeE8M0(amax / largest, quantizer.scale_rule);
}

void PutCode(ReferenceTensor& q, int64_t row, int64_t col, uint8_t code) {
  const int64_t cols = q.quantizer.CodeCols(q.inner);
  if (q.quantizer.format != Format::kE2M1) {
    q.codes[static_cast<size_t>(row * cols + col)] = code;
  } else {
    uint8_t& both = q.codes[static_cast<size_t>(row * cols + col / 2)];
    both = static_cast<uint8_t>(col % 2 == 0 ? (both & 0xf0) | code : (both & 0xf) | (code << 4));
  }
}

uint8_t GetCode(const ReferenceTensor& q, int64_t row, int64_t col) {
  const int64_t cols = q.quantizer.CodeCols(q.inner);
  if (q.quantizer.format != Format::kE2M1) return q.codes[static_cast<size_t>(row * cols + col)];
  return static_cast<uint8_t>(q.codes[static_cast<size_t>(row * cols + col / 2)] >> (col % 2 * 4) & 0xf);
}

}  // namespace

ReferenceTensor QuantizeReference(const Quantizer& quantizer, std::span<const float> x, int64_t outer, int64_t inner,
                                  float delayed_scale, const std::function<uint32_t(int64_t)>& draw) {
  const int64_t padded = quantizer.PaddedInner(inner);
  const int64_t block = BlockOf(quantizer.scaling);
  const int64_t draw_cols = quantizer.DrawCols(inner);
  const int64_t block_rows = quantizer.scaling == Scaling::kBlock16x16 ? 16 : 1;
  ReferenceTensor q = {quantizer, outer, inner, {}, {}, 1, 0};
  q.codes.resize(static_cast<size_t>(outer * quantizer.CodeCols(inner)));
  q.scales.resize(static_cast<size_t>(outer * quantizer.ScaleCols(inner)));

  std::vector<float> values(static_cast<size_t>(outer * padded), 0.0F);
  for (int64_t row = 0; row < outer; ++row) {
    std::copy_n(x.begin() + row * inner, inner, values.begin() + row * padded);
  }
  if (quantizer.hadamard) {
    for (size_t at = 0; at < values.size(); at += kHadamardSize) {
      std::array<float, kHadamardSize> group;
      std::copy_n(&values[at], kHadamardSize, group.begin());
      std::copy_n(HadamardReference(group).begin(), kHadamardSize, &values[at]);
    }
  }
  for (const float value : values) q.amax = MaxAbs(q.amax, value);
  const auto encode = [&](float scaled, int64_t row, int64_t col) {
    const uint8_t code = quantizer.rounding == Rounding::kNearest
                             ? Encode(quantizer.format, scaled)
                             : Encode(quantizer.format, scaled, draw(row * draw_cols + col), quantizer.draw_bits());
    PutCode(q, row, col, code);
  };

  if (!HasBlocks(quantizer.scaling)) {
    const float scale =
        quantizer.scaling == Scaling::kDelayed ? delayed_scale : TensorScale(InfoOf(quantizer.format).max, q.amax, 1);
    q.tensor_scale = 1 / scale;
    for (int64_t row = 0; row < outer; ++row) {
      for (int64_t col = 0; col < padded; ++col) {
        encode(values[static_cast<size_t>(row * padded + col)] * scale, row, col);
      }
    }
    return q;
  }

  const float encode_scale = TensorScale(kNvfp4Max, q.amax, 1);
  if (quantizer.has_tensor_scale()) q.tensor_scale = 1 / encode_scale;
  for (int64_t first_row = 0; first_row < outer; first_row += block_rows) {
    const int64_t last_row = std::min(outer, first_row + block_rows);
    for (int64_t first = 0; first < padded; first += block) {
      float amax = 0;
      for (int64_t row = first_row; row < last_row; ++row) {
        for (int64_t col = first; col < first + block; ++col) {
          amax = MaxAbs(amax, values[static_cast<size_t>(row * padded + col)]);
        }
      }
      uint8_t scale;
      float factor = 1;
      float divisor = 1;
      if (quantizer.scaling == Scaling::kBlock32) {
        scale = E8M0Scale(quantizer, amax);
        factor = scale == 255 ? DecodeE8M0(255) : DecodeE8M0(static_cast<uint8_t>(254 - scale));
      } else {
        scale = Encode(Format::kE4M3, amax * encode_scale / kMaxE2M1);
        divisor = Decode(Format::kE4M3, scale) * q.tensor_scale;
        if (divisor == 0) divisor = std::numeric_limits<float>::infinity();
      }
      for (int64_t row = first_row; row < last_row; ++row) {
        q.scales[static_cast<size_t>(row * (padded / block) + first / block)] = scale;
        for (int64_t col = first; col < first + block; ++col) {
          encode(values[static_cast<size_t>(row * padded + col)] * factor / divisor, row, col);
        }
      }
    }
  }
  return q;
}

std::vector<float> DequantizeReference(const ReferenceTensor& q) {
  const int64_t padded = q.quantizer.PaddedInner(q.inner);
  const int64_t block = BlockOf(q.quantizer.scaling);
  std::vector<float> values;
  values.reserve(static_cast<size_t>(q.outer * padded));
  for (int64_t row = 0; row < q.outer; ++row) {
    for (int64_t col = 0; col < padded; ++col) {
      float value = Decode(q.quantizer.format, GetCode(q, row, col));
      if (block > 1) {
        const uint8_t scale = q.scales[static_cast<size_t>(row * (padded / block) + col / block)];
        value *= q.quantizer.scaling == Scaling::kBlock32 ? DecodeE8M0(scale) : Decode(Format::kE4M3, scale);
      }
      values.push_back(value * q.tensor_scale);
    }
  }
  return values;
}

std::array<float, kHadamardSize> HadamardReference(const std::array<float, kHadamardSize>& x) {
  std::array<float, kHadamardSize> y = x;
  for (size_t i = 0; i < y.size(); ++i) y[i] *= kHadamardSigns[i] / 4;
  for (size_t h = 1; h < y.size(); h *= 2) {
    for (size_t i = 0; i < y.size(); ++i) {
      if ((i & h) != 0) continue;
      const float low = y[i];
      const float high = y[i + h];
      y[i] = low + high;
      y[i + h] = low - high;
    }
  }
  return y;
}

}  // namespace ridgeline::engine
