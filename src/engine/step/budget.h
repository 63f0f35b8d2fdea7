// The budget of a step: what its trace moves and multiplies, op by op, and the least time that this takes on a
// described device. It names passes over memory that a step could do without. It runs nothing, and needs no device.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/device/speed.h"
#include "engine/device/trace.h"

namespace ridgeline::engine {

// All calls of one op in one phase.
struct BudgetLine {
  std::string_view part;    // of the budget; empty if these calls belong to none
  std::string_view reason;  // why the calls exist nevertheless
  std::string_view op;
  Phase phase = Phase::kForward;
  int64_t calls = 0;
  double bytes = 0;          // of operands, read and written
  double scratch_bytes = 0;  // numbers that kernels write there and read again, once each
  double flops = 0;
  double floor_ns = 0;  // the sum of their LeastNs
};

// The maker's peak for the device, in FLOPs a second, in the format of most of the FLOPs.
struct Peak {
  std::string_view format;
  double flops = 0;
};
Peak PeakOf(const Trace& trace, const DeviceSpeed& speed);

// Returns the format that a call multiplies: numbers of 16 bits in place of a format that its device lacks.
MathFormat MultipliedFormat(const OpCall& call);
std::string_view MathFormatName(MathFormat format);  // "bf16"
std::string_view PhaseName(Phase phase);             // "forward"
// Returns the bytes that a call's kernels write into its scratch and read again. Buffers for libraries do not count:
// the trace knows their size, but not how libraries use them.
double ScratchBytes(const OpCall& call);

// The least time of a call: by the rate of its product or of the memory, whichever takes longer.
double LeastNs(const OpCall& call, const DeviceSpeed& speed);

// Returns the lines part by part, the longest first; calls of no part come last. The times exclude communication.
std::vector<BudgetLine> Budget(const Trace& trace, const DeviceSpeed& speed);

}  // namespace ridgeline::engine
