#include "engine/ops/loss.h"

#include "engine/ops/record.h"

namespace ridgeline::engine {

namespace {

constexpr BudgetPlace kLossBudget = PartOfBudget("loss, gradient in place");

}  // namespace

const Op<CrossEntropyOperands, LossAttrs> kCrossEntropy{OpDef::Pass("cross_entropy", kLossBudget)};
const Op<LossStatisticsOperands, LossStatisticsAttrs> kLossStatistics{OpDef::Pass("loss_statistics", kLossBudget)};
const Op<CrossEntropyOfPartOperands, CrossEntropyOfPartAttrs> kCrossEntropyOfPart{
    OpDef::Pass("cross_entropy_of_part", kLossBudget)};
const Op<SumLossOperands, LossAttrs> kSumLoss{OpDef::Pass("sum_loss", kLossBudget)};

namespace {

bool AreLogits(const Tensor& logits, const Tensor& targets) {
  return IsFloat(logits) && logits.row_stride >= logits.cols && logits.cols > 0 &&
         Is(targets, DType::kI32, 1, logits.rows);
}

}  // namespace

void CrossEntropy(Trace& trace, Tensor logits, Tensor targets, Tensor loss, double scale, Tensor factor) {
  Require(AreLogits(logits, targets) && IsScalar(loss) && (!factor.defined() || factor.dtype == DType::kF32),
          kCrossEntropy, "targets must be (1, rows) int32 for logits of (rows, vocab), loss (1, 1) in fp32",
          {{"logits", logits}, {"targets", targets}, {"loss", loss}});
  const Tensor row_losses = trace.Temporary(DType::kF32, 1, logits.rows, Category::kWorkspace);
  trace.Call(kCrossEntropy, {{logits, targets, loss, factor}, {logits, loss}, {row_losses}}, {}, {scale});
}

void LossStatistics(Trace& trace, Tensor logits, Tensor targets, Tensor statistics, int64_t first) {
  Require(AreLogits(logits, targets) && Is(statistics, DType::kF32, 1, kNumbersOfLoss * logits.rows) && first >= 0,
          kLossStatistics,
          "targets must be (1, rows) int32 for logits of (rows, vocab), statistics (1, 3 rows) in fp32",
          {{"logits", logits}, {"targets", targets}, {"statistics", statistics}});
  trace.Call(kLossStatistics, {{logits, targets}, {statistics}}, {}, {first});
}

void CrossEntropyOfPart(Trace& trace, Tensor logits, Tensor targets, Tensor statistics, Tensor loss, double scale,
                        int64_t first, Tensor factor) {
  Require(AreLogits(logits, targets) && IsScalar(loss) && (!factor.defined() || factor.dtype == DType::kF32) &&
              Is(statistics, DType::kF32, 1, statistics.cols) &&
              statistics.cols % (kNumbersOfLoss * logits.rows) == 0 && first >= 0,
          kCrossEntropyOfPart,
          "targets must be (1, rows) int32 for logits of (rows, vocab), statistics (1, parts * 3 rows), loss (1, 1)",
          {{"logits", logits}, {"targets", targets}, {"statistics", statistics}, {"loss", loss}});
  const Tensor row_losses = trace.Temporary(DType::kF32, 1, logits.rows, Category::kWorkspace);
  trace.Call(kCrossEntropyOfPart, {{logits, targets, statistics, loss, factor}, {logits, loss}, {row_losses}}, {},
             {scale, first});
}

void SumLoss(Trace& trace, Tensor x, Tensor loss, double scale) {
  Require(IsFloat(x) && x.contiguous() && IsScalar(loss), kSumLoss, "x must be contiguous, loss (1, 1) in fp32",
          {{"x", x}, {"loss", loss}});
  const Tensor parts = trace.Temporary(DType::kF32, 1, ElementParts(x.elements()), Category::kWorkspace);
  trace.Call(kSumLoss, {{x, loss}, {loss}, {parts}}, {}, {scale});
}

}  // namespace ridgeline::engine
