// Limits on what Ridgeline reads from trainers and jobs. Their writers are not trusted, and may write any length. A
// longer text is refused with a sentence, or cut where the comment says so.
#ifndef RIDGELINE_LIMITS_H_
#define RIDGELINE_LIMITS_H_

#include <cstddef>

namespace ridgeline {

// A trainer's result file. A run of many steps may have this many bytes per step instead, because its series are long.
inline constexpr size_t kMaxResultBytes = size_t{8} << 20;
inline constexpr size_t kMaxResultBytesAStep = 96;

// A text of a result: message, hint, device, one piece of evidence or of the environment. And the name of such a piece,
// or of a metric.
inline constexpr size_t kMaxTextBytes = size_t{64} << 10;
inline constexpr size_t kMaxNameBytes = 256;
// How many pieces of evidence, of environment, and metrics a trainer may give, each.
inline constexpr size_t kMaxTexts = 256;

// The end of a log that is kept as evidence of a failure. A longer log is cut.
inline constexpr size_t kLogTailBytes = 4096;
// A progress file, which has one line.
inline constexpr size_t kMaxProgressBytes = 256;

// A line of a job's results file or of a pod's log (job_line.h). A longer line is ignored. A result with series of a
// million steps takes a third of this.
inline constexpr size_t kMaxJobLineBytes = size_t{128} << 20;
// A file of such lines.
inline constexpr size_t kMaxResultsFileBytes = size_t{4} << 30;
// A node's part in a point, which is one line of its pod's log; Kubernetes rotates such logs at 10 MiB. And the file of
// all pods' parts.
inline constexpr size_t kMaxPartBytes = size_t{4} << 20;
inline constexpr size_t kMaxPartsFileBytes = size_t{1} << 30;

// A job's job.json.
inline constexpr size_t kMaxJobFileBytes = size_t{128} << 20;
// A launcher's record of a job.
inline constexpr size_t kMaxRecordBytes = size_t{16} << 20;

// The manifest of checkpoint files, which has the series of all steps so far. And the header of a safetensors file.
inline constexpr size_t kMaxManifestBytes = size_t{128} << 20;
inline constexpr size_t kMaxTensorHeaderBytes = 100'000'000;  // the safetensors library's own limit

}  // namespace ridgeline

#endif  // RIDGELINE_LIMITS_H_
