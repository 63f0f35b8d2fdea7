#include "engine/ops/gemm.h"

#include "engine/ops/record.h"

namespace ridgeline {

const OpDef kGemm{"gemm"};

void Gemm(Trace& trace, Tensor a, Trans trans_a, Tensor b, Trans trans_b, Tensor c, bool accumulate, Tensor bias) {
  const auto require = [&](bool ok, const char* rule) {
    Require(ok, kGemm, rule, {{"a", a}, {"b", b}, {"c", c}, {"bias", bias}});
  };
  require(IsFloat(a) && IsFloat(b) && IsFloat(c) && a.dtype == b.dtype, "a and b are both fp32 or both bf16");
  const int64_t m = trans_a == Trans::kYes ? a.cols : a.rows;
  const int64_t k = trans_a == Trans::kYes ? a.rows : a.cols;
  const int64_t n = trans_b == Trans::kYes ? b.rows : b.cols;
  require(m > 0 && n > 0 && k > 0, "every dimension is at least 1");
  require(k == (trans_b == Trans::kYes ? b.cols : b.rows), "a and b must agree in the dimension summed over");
  require(c.rows == m && c.cols == n, "c is (rows of op(a), columns of op(b))");
  for (const Tensor& t : {a, b, c}) require(t.row_stride >= t.cols || t.rows == 1, "row_stride >= cols");
  require(!bias.defined() || (IsFloat(bias) && bias.rows == 1 && bias.cols == n), "bias is (1, columns of c)");

  Cost cost;
  cost.flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  cost.flops_dtype = a.dtype;
  cost.bytes = Moves({a, b, bias, accumulate ? c : Tensor{}}, {c}).bytes;
  trace.Call(kGemm, {a, b, c, bias}, cost, GemmAttrs{trans_a, trans_b, accumulate});
}

}  // namespace ridgeline
