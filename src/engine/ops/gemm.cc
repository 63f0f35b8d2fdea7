#include "engine/ops/gemm.h"

#include "engine/ops/record.h"

namespace ridgeline {

const Op<GemmOperands, GemmAttrs> kGemm{{"gemm"}};
const Op<QuantizedGemmOperands, QuantizedGemmAttrs> kQuantizedGemm{{"quantized_gemm"}};

void Gemm(Trace& trace, Tensor a, Trans trans_a, Tensor b, Trans trans_b, Tensor c, bool accumulate, Tensor bias) {
  const auto require = [&](bool ok, const char* rule) {
    Require(ok, kGemm, rule, {{"a", a}, {"b", b}, {"c", c}, {"bias", bias}});
  };
  require(IsFloat(a) && IsFloat(b) && IsFloat(c) && a.dtype == b.dtype,
          "a and b have one floating dtype, and c is floating");
  const int64_t m = trans_a == Trans::kYes ? a.cols : a.rows;
  const int64_t k = trans_a == Trans::kYes ? a.rows : a.cols;
  const int64_t n = trans_b == Trans::kYes ? b.rows : b.cols;
  require(m > 0 && n > 0 && k > 0, "every dimension is at least 1");
  require(k == (trans_b == Trans::kYes ? b.cols : b.rows), "a and b must agree in the dimension summed over");
  require(c.rows == m && c.cols == n, "c is (rows of op(a), columns of op(b))");
  for (const Tensor& t : {a, b, c}) require(t.row_stride >= t.cols || t.rows == 1, "row_stride >= cols");
  require(!bias.defined() || (IsFloat(bias) && bias.rows == 1 && bias.cols == n), "bias is (1, columns of c)");

  const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  trace.Call(kGemm, {{a, b, bias, accumulate ? c : Tensor{}}, {c}}, {.flops = flops, .format = MathFormatOf(a.dtype)},
             {trans_a, trans_b, accumulate});
}

void Gemm(Trace& trace, const QuantizedTensor& a, const QuantizedTensor& b, Tensor c, bool accumulate, Tensor bias) {
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
  const bool fp4 = a.quantizer.format == Format::kE2M1 && b.quantizer.format == Format::kE2M1;
  trace.Call(kQuantizedGemm, {{a.stored(), b.stored(), bias, accumulate ? c : Tensor{}}, {c}},
             {.flops = flops, .format = fp4 ? MathFormat::kFp4 : MathFormat::kFp8},
             {a.quantizer, b.quantizer, terms, accumulate});
}

}  // namespace ridgeline
