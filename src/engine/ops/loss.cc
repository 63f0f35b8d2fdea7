#include "engine/ops/loss.h"

#include "engine/ops/record.h"

namespace ridgeline::engine {

namespace {

constexpr BudgetPlace kLossBudget = PartOfBudget("loss, gradient in place");

}  // namespace

const Op<CrossEntropyOperands, LossAttrs> kCrossEntropy{OpDef::Pass("cross_entropy", kLossBudget)};
const Op<SumLossOperands, LossAttrs> kSumLoss{OpDef::Pass("sum_loss", kLossBudget)};

void CrossEntropy(Trace& trace, Tensor logits, Tensor targets, Tensor loss, double scale, Tensor factor) {
  Require(IsFloat(logits) && logits.row_stride >= logits.cols && logits.cols > 0 &&
              Is(targets, DType::kI32, 1, logits.rows) && IsScalar(loss) &&
              (!factor.defined() || factor.dtype == DType::kF32),
          kCrossEntropy, "targets must be (1, rows) int32 for logits of (rows, vocab), loss (1, 1) in fp32",
          {{"logits", logits}, {"targets", targets}, {"loss", loss}});
  const Tensor row_losses = trace.Temporary(DType::kF32, 1, logits.rows, Category::kWorkspace);
  trace.Call(kCrossEntropy, {{logits, targets, loss, factor}, {logits, loss}, {row_losses}}, {}, {scale});
}

void SumLoss(Trace& trace, Tensor x, Tensor loss, double scale) {
  Require(IsFloat(x) && x.contiguous() && IsScalar(loss), kSumLoss, "x must be contiguous, loss (1, 1) in fp32",
          {{"x", x}, {"loss", loss}});
  const Tensor parts = trace.Temporary(DType::kF32, 1, ElementParts(x.elements()), Category::kWorkspace);
  trace.Call(kSumLoss, {{x, loss}, {loss}, {parts}}, {}, {scale});
}

}  // namespace ridgeline::engine
