// The budget of a step: what its trace moves and multiplies, op by op, and the least time that this takes on a
// described device. Passes over memory that a step could do without are named. Nothing is run, and no device is needed.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/device/speed.h"
#include "engine/device/trace.h"

namespace ridgeline {

// All calls of one op in one phase.
struct BudgetLine {
  std::string_view part;    // of the budget; empty where it has none for them
  std::string_view reason;  // that they are there all the same
  std::string_view op;
  Phase phase = Phase::kForward;
  int64_t calls = 0;
  double bytes = 0;          // of operands, read and written
  double scratch_bytes = 0;  // numbers that kernels put there and read again, once each
  double flops = 0;
  double floor_ns = 0;  // by its products' rate or by the memory's, whichever takes longer
};

// What its maker says that the device multiplies in a second, in the format that most of the FLOPs are in.
struct Peak {
  std::string_view format;
  double flops = 0;
};
Peak PeakOf(const Trace& trace, const DeviceSpeed& speed);

// What a call multiplies: in place of a format that its device has not, numbers of 16 bits.
MathFormat MultipliedFormat(const OpCall& call);
std::string_view MathFormatName(MathFormat format);  // "bf16"
std::string_view PhaseName(Phase phase);             // "forward"
// Of the numbers that a call's kernels put into its scratch and read again. What libraries ask for is bytes to the
// trace, and nobody knows what they do with it.
double ScratchBytes(const OpCall& call);

// Part by part, the longest first; what no part has comes last. What goes to other ranks is not in the times.
std::vector<BudgetLine> Budget(const Trace& trace, const DeviceSpeed& speed);

}  // namespace ridgeline
