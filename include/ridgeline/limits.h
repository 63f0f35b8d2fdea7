// How much is taken of what comes back from trainers and jobs: none of it is ours, and all of it may be as long as its
// writer likes. What is longer is refused in words, or cut where that is said.
#ifndef RIDGELINE_LIMITS_H_
#define RIDGELINE_LIMITS_H_

#include <cstddef>

namespace ridgeline {

// A trainer's result file. Of a run with so many steps that their series alone may be longer, so much a step.
inline constexpr size_t kMaxResultBytes = size_t{8} << 20;
inline constexpr size_t kMaxResultBytesAStep = 96;

// A text of a result: its message, hint, device, or a piece of evidence or of its environment; and a name of such a
// piece, or of an amount.
inline constexpr size_t kMaxTextBytes = size_t{64} << 10;
inline constexpr size_t kMaxNameBytes = 256;
// Pieces of evidence, of an environment, amounts: of each that a trainer gives.
inline constexpr size_t kMaxTexts = 256;

// Of a log's end, as evidence of a failure.
inline constexpr size_t kLogTailBytes = 4096;
// Of a progress file, which has one line.
inline constexpr size_t kMaxProgressBytes = 256;

// A line of a job's results file or of a pod's log (job_line.h): what is longer is no line. Of a result with the series
// of a million steps a third of this.
inline constexpr size_t kMaxJobLineBytes = size_t{128} << 20;
// The file of such lines.
inline constexpr size_t kMaxResultsFileBytes = size_t{4} << 30;
// What a node says of its part in a point, in a line of its pod's log: a node rotates such logs at 10 MiB. And the file
// of all pods' such lines.
inline constexpr size_t kMaxPartBytes = size_t{4} << 20;
inline constexpr size_t kMaxPartsFileBytes = size_t{1} << 30;

// A job's job.json.
inline constexpr size_t kMaxJobFileBytes = size_t{128} << 20;
// A record that a launcher keeps of a job.
inline constexpr size_t kMaxRecordBytes = size_t{16} << 20;

// The manifest of checkpoint files, which has the series of all steps so far, and the header of a file of tensors.
inline constexpr size_t kMaxManifestBytes = size_t{128} << 20;
inline constexpr size_t kMaxTensorHeaderBytes = 100'000'000;  // as the safetensors library has it

}  // namespace ridgeline

#endif  // RIDGELINE_LIMITS_H_
