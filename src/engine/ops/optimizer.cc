#include "engine/ops/optimizer.h"

#include <bit>
#include <cmath>

#include "engine/ops/record.h"

namespace ridgeline::engine {

namespace {

constexpr BudgetPlace kGradientNormBudget =
    BesideBudget("no update may begin before the norm of all gradients is known");

}  // namespace

const Op<AdamOperands, AdamAttrs> kAdam{OpDef::Pass("adam", PartOfBudget("optimizer, one pass"))};
const Op<SquaredSumOperands> kSquaredSum{OpDef::Pass("squared_sum", kGradientNormBudget)};
const Op<ClipScaleOperands, ClipAttrs> kClipScale{OpDef::Pass("clip_scale", kGradientNormBudget)};
const Op<LossScaleOperands, ClipAttrs> kLossScale{OpDef::Pass("loss_scale", kGradientNormBudget)};

namespace {

bool Joins(const Tensor& t, const Tensor& work) { return t.contiguous() && t.elements() == work.elements(); }

}  // namespace

void Adam(Trace& trace, Tensor work, Tensor master, Tensor m, Tensor v, Tensor grad, Tensor scale,
          const AdamAttrs& attrs, Tensor loss_scale) {
  const bool whole = master.defined() && master.dtype == DType::kF32;
  const bool remainder = master.defined() && master.dtype == DType::kI16;
  Require(
      IsFloat(work) && work.contiguous() && IsF32OrBf16(m) && Joins(m, work) && IsF32OrBf16(v) && v.dtype == m.dtype &&
          Joins(v, work) && IsF32OrBf16(grad) && Joins(grad, work) && (!scale.defined() || IsScalar(scale)) &&
          (!loss_scale.defined() || Is(loss_scale, DType::kF32, 1, kLossScaleState)) &&
          (!master.defined() || (Joins(master, work) &&
                                 ((whole && work.dtype != DType::kF32) || (remainder && work.dtype == DType::kBF16)))),
      kAdam,
      "work, m, v, grad and master must have as many elements, contiguous; m and v one dtype, fp32 or "
      "bf16, as grad; master fp32 beside a work of 16 bits, or int16 beside a bf16 one; scale (1, 1) and loss_scale "
      "(1, 3) in fp32",
      {{"work", work},
       {"master", master},
       {"m", m},
       {"v", v},
       {"grad", grad},
       {"scale", scale},
       {"loss_scale", loss_scale}});
  // With a whole master weight, work is read only in the sense that a skipped step leaves it unchanged.
  const double less = whole ? static_cast<double>(work.bytes()) : 0;
  trace.Call(kAdam, {{work, master, m, v, grad, scale, loss_scale, trace.Inputs()}, {work, master, m, v}},
             {.more_bytes = -less}, attrs);
}

void SplitMaster(float master, uint16_t& work, int16_t& low) {
  const auto bits = std::bit_cast<uint32_t>(master);
  if (std::isnan(master)) {  // rounding could carry into the sign, and any NaN will do
    work = static_cast<uint16_t>((bits >> 16) | 0x40);
    low = 0;
    return;
  }
  // Ties go away from zero, so that the remainder is -2^15; 2^15 would not fit.
  const uint32_t rounded = bits + 0x8000;
  work = static_cast<uint16_t>(rounded >> 16);
  low = static_cast<int16_t>(bits - (rounded & 0xffff0000));
}

float JoinMaster(uint16_t work, int16_t low) {
  return std::bit_cast<float>((static_cast<uint32_t>(work) << 16) + static_cast<uint32_t>(int32_t{low}));
}

void SquaredSum(Trace& trace, Tensor x, Tensor sum) {
  Require(IsFloat(x) && x.contiguous() && IsScalar(sum), kSquaredSum, "x must be contiguous, sum (1, 1) in fp32",
          {{"x", x}, {"sum", sum}});
  const Tensor parts = trace.Temporary(DType::kF32, 1, ElementParts(x.elements()), Category::kWorkspace);
  trace.Call(kSquaredSum, {{x, sum}, {sum}, {parts}});
}

void ClipScale(Trace& trace, Tensor sum, Tensor norm, Tensor scale, double clip) {
  Require(IsScalar(sum) && IsScalar(norm) && IsScalar(scale) && clip > 0, kClipScale,
          "sum, norm and scale must be (1, 1) in fp32, and clip positive",
          {{"sum", sum}, {"norm", norm}, {"scale", scale}});
  trace.Call(kClipScale, {{sum}, {norm, scale}}, {}, {clip});
}

void LossScale(Trace& trace, Tensor sum, Tensor state, Tensor norm, Tensor scale, double clip) {
  Require(IsScalar(sum) && Is(state, DType::kF32, 1, kLossScaleState) && IsScalar(norm) && IsScalar(scale) && clip >= 0,
          kLossScale, "sum, norm and scale must be (1, 1) in fp32, state (1, 3), and clip not negative",
          {{"sum", sum}, {"state", state}, {"norm", norm}, {"scale", scale}});
  trace.Call(kLossScale, {{sum, state}, {state, norm, scale}}, {}, {clip});
}

}  // namespace ridgeline::engine
