#include "engine/ops/gemm.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "engine/ops/quantize.h"
#include "engine/ops/record.h"

namespace ridgeline::engine {

namespace {

constexpr BudgetPlace kProductBudget = PartOfBudget("linear products and head");

std::array<int64_t, 3> DimsOfGemm(const OpCall& call) {
  const Tensor a = call.operands(kGemm).reads.a;
  const Tensor c = call.operands(kGemm).writes.c;
  return {c.rows, c.cols, call.attrs(kGemm).trans_a == Trans::kYes ? a.rows : a.cols};
}
uint32_t VariantOfGemm(const OpCall& call) {
  const GemmAttrs& attrs = call.attrs(kGemm);
  return static_cast<uint32_t>(attrs.trans_a) | static_cast<uint32_t>(attrs.trans_b) << 1U |
         static_cast<uint32_t>(attrs.tf32) << 2U;
}
std::string NameOfGemm(uint32_t variant) {
  return fmt::format(" {}{}{}", (variant & 1U) != 0 ? 't' : 'n', (variant >> 1U & 1U) != 0 ? 't' : 'n',
                     variant >> 2U != 0 ? " tf32" : "");
}

std::array<int64_t, 3> DimsOfQuantizedGemm(const OpCall& call) {
  const Tensor c = call.operands(kQuantizedGemm).writes.c;
  return {c.rows, c.cols, call.attrs(kQuantizedGemm).terms};
}
uint32_t VariantOfQuantizedGemm(const OpCall& call) {
  const QuantizedGemmAttrs& attrs = call.attrs(kQuantizedGemm);
  return VariantOfTwo(VariantOf(attrs.a), VariantOf(attrs.b));
}

}  // namespace

const Op<GemmOperands, GemmAttrs> kGemm{
    OpDef::Product("gemm", kProductBudget, DimsOfGemm, {VariantOfGemm, NameOfGemm})};
const Op<QuantizedGemmOperands, QuantizedGemmAttrs> kQuantizedGemm{
    OpDef::Product("quantized_gemm", kProductBudget, DimsOfQuantizedGemm, {VariantOfQuantizedGemm, NameOfTwo})};

namespace {

constexpr int64_t kUnitBytes = 16;  // the unit in which tensor cores load

Tensor Scratch(Trace& trace, DType dtype, int64_t rows, int64_t cols) {
  return trace.Temporary(dtype, rows, cols, Category::kWorkspace);
}
Tensor ProductWorkspace(Trace& trace) { return Scratch(trace, DType::kU8, 1, trace.device().product_workspace_bytes); }
bool IsAligned(const Tensor& t) {
  const int64_t unit = kUnitBytes / SizeOf(t.dtype);
  return t.offset % unit == 0 && (t.row_stride % unit == 0 || t.rows == 1);
}

// Returns a buffer for the sums if cuBLASLt cannot store c's new value. It stores sums as fp32 and in the dtype of
// 16-bit operands (`stored`), and adds biases of the dtype that it stores.
Tensor Sums(Trace& trace, bool stored, const Tensor& c, const Tensor& bias, DType bias_dtype) {
  if (stored && (!bias.defined() || (bias.dtype == bias_dtype && IsAligned(bias)))) return {};
  return Scratch(trace, DType::kF32, c.rows, c.cols);
}
Tensor Sums(Trace& trace, DType in, const Tensor& c, const Tensor& bias) {
  return Sums(trace, c.dtype == DType::kF32 || c.dtype == in, c, bias, c.dtype);
}

// Whether tensor cores of the device multiply the codes themselves (cuBLAS documentation, "cublasLtMatmul").
bool MultipliesCodes(const DeviceDescription& device, const QuantizedTensor& a, const QuantizedTensor& b,
                     const Tensor& c) {
  const bool fp4 = a.quantizer.format == Format::kE2M1;
  const int64_t unit = fp4 ? 2 * kUnitBytes : kUnitBytes;
  const int64_t block = BlockOf(a.quantizer.scaling);
  if (device.compute_capability < (block > 1 ? 100 : 89) || block != BlockOf(b.quantizer.scaling)) return false;
  if (a.quantizer.format == Format::kE5M2 && b.quantizer.format == Format::kE5M2) return false;
  return a.outer % unit == 0 && b.outer % unit == 0 && a.quantizer.PaddedInner(a.inner) % unit == 0 &&
         IsAligned(a.codes) && IsAligned(b.codes) && IsAligned(c);
}

// Returns a buffer for the scales in the tiles of tensor cores.
Tensor TiledScales(Trace& trace, const Tensor& scales) {
  if (!scales.defined()) return {};
  const auto round_up = [](int64_t value, int64_t to) { return (value + to - 1) / to * to; };
  return Scratch(trace, DType::kU8, round_up(scales.rows, kScaleTileRows), round_up(scales.cols, kScaleTileCols));
}

}  // namespace

void Gemm(Trace& trace, Tensor a, Trans trans_a, Tensor b, Trans trans_b, Tensor c, bool accumulate, Tensor bias,
          bool tf32) {
  const auto require = [&](bool ok, const char* rule) {
    Require(ok, kGemm, rule, {{"a", a}, {"b", b}, {"c", c}, {"bias", bias}});
  };
  require(IsFloat(a) && IsFloat(b) && IsFloat(c) && a.dtype == b.dtype,
          "a and b have one floating dtype, and c is floating");
  require(!tf32 || a.dtype == DType::kF32, "TF32 is multiplied of fp32");
  const int64_t m = trans_a == Trans::kYes ? a.cols : a.rows;
  const int64_t k = trans_a == Trans::kYes ? a.rows : a.cols;
  const int64_t n = trans_b == Trans::kYes ? b.rows : b.cols;
  require(m > 0 && n > 0 && k > 0, "every dimension is at least 1");
  require(k == (trans_b == Trans::kYes ? b.cols : b.rows), "a and b must agree in the dimension summed over");
  require(c.rows == m && c.cols == n, "c is (rows of op(a), columns of op(b))");
  for (const Tensor& t : {a, b, c}) require(t.row_stride >= t.cols || t.rows == 1, "row_stride >= cols");
  require(!bias.defined() || (IsFloat(bias) && bias.rows == 1 && bias.cols == n), "bias is (1, columns of c)");

  const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  GemmOperands on = {{a, b, bias, accumulate ? c : Tensor{}}, {c}, {}};
  if (trace.device().cuda()) on.scratch = {Sums(trace, a.dtype, c, bias), ProductWorkspace(trace)};
  trace.Call(kGemm, on, {.flops = flops, .format = tf32 ? MathFormat::kTF32 : MathFormatOf(a.dtype)},
             {trans_a, trans_b, accumulate, tf32});
}

void Gemm(Trace& trace, const QuantizedTensor& a, const QuantizedTensor& b, Tensor c, bool accumulate, Tensor bias,
          bool fast_sums) {
  const auto require = [&](bool ok, const char* rule) {
    Require(ok, kQuantizedGemm, rule, {{"a", a.codes}, {"b", b.codes}, {"c", c}, {"bias", bias}});
  };
  const int64_t terms = a.quantizer.PaddedInner(a.inner);
  require(a.codes.defined() && b.codes.defined() && IsFloat(c), "a and b are quantized, c is floating");
  require(a.inner == b.inner && terms == b.quantizer.PaddedInner(b.inner),
          "a and b must agree in the dimension summed over");
  require(c.rows == a.outer && c.cols == b.outer, "c is (outer of a, outer of b)");
  require(c.row_stride >= c.cols || c.rows == 1, "row_stride >= cols");
  require(!bias.defined() || (IsFloat(bias) && bias.rows == 1 && bias.cols == c.cols), "bias is (1, columns of c)");

  const double flops = 2.0 * static_cast<double>(a.outer) * static_cast<double>(b.outer) * static_cast<double>(terms);
  MathFormat format = HasBlocks(a.quantizer.scaling) ? MathFormat::kMxfp8 : MathFormat::kFp8;
  if (a.quantizer.format == Format::kE2M1) format = MathFormat::kFp4;
  QuantizedGemmOperands on = {{a.stored(), b.stored(), bias, accumulate ? c : Tensor{}}, {c}, {}};
  const DeviceDescription& device = trace.device();
  const bool native = device.cuda() && MultipliesCodes(device, a, b, c);
  if (device.cuda()) {
    auto& scratch = on.scratch;
    if (native) {
      scratch.a = TiledScales(trace, a.scales);
      scratch.b = TiledScales(trace, b.scales);
      // With codes, the bias of fp32 sums is bf16.
      scratch.sums = Sums(trace, true, c, bias, c.dtype == DType::kF32 ? DType::kBF16 : c.dtype);
    } else {
      scratch.a = Scratch(trace, DType::kBF16, a.outer, terms);
      scratch.b = Scratch(trace, DType::kBF16, b.outer, terms);
      scratch.sums = Sums(trace, DType::kBF16, c, bias);
    }
    // A native product multiplies by one scale a tensor. With blocks, the tensor scale is a factor of the sum.
    const bool scaled = a.tensor_scale.defined() || b.tensor_scale.defined();
    if (scaled && !(native && !a.scales.defined())) scratch.factors = Scratch(trace, DType::kF32, 1, 2);
    scratch.workspace = ProductWorkspace(trace);
  }
  trace.Call(kQuantizedGemm, on, {.flops = flops, .format = format, .emulated = device.cuda() && !native},
             {a.quantizer, b.quantizer, terms, accumulate, fast_sums});
}

}  // namespace ridgeline::engine
