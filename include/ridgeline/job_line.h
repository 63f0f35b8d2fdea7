// The lines in which a job reports on its points. They stand in its results file (job_dir.h). Without a shared folder,
// `ridgeline exec --print-results` prints them, and a launcher finds them among the other lines of the pod's log.
//
//   ridgeline: KIND POINT BYTES CHECKSUM PAYLOAD
//
// KIND says what PAYLOAD is:
//   progress  the text of the progress file; empty when the point begins
//   result    a RunResult as JSON on one line
//   part      of a point on several nodes: a node's number, then, as JSON, how its ranks ended and what their logs held
//             (src/trainers/node_part.h)
// A result whose evidence has `awaits_nodes` was made without the parts of other nodes, because the nodes share no
// folder. The collector makes the point's one result from it when all parts have come, or, with those that have come,
// when the job is over. BYTES is the length of the payload. CHECKSUM covers all other words (checksum.h), so a line
// that was cut or damaged is ignored. Lines of earlier versions have the payload's FNV-1a 64 there, in 16 digits.
#ifndef RIDGELINE_JOB_LINE_H_
#define RIDGELINE_JOB_LINE_H_

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ridgeline/checksum.h"
#include "ridgeline/limits.h"

namespace ridgeline {

struct JobLine {
  std::string kind;
  std::string point_id;
  std::string payload;  // without a line end
  bool operator==(const JobLine&) const = default;
};

inline constexpr std::string_view kProgressLine = "progress";
inline constexpr std::string_view kResultLine = "result";
inline constexpr std::string_view kPartLine = "part";
inline constexpr std::string_view kJobLineMark = "ridgeline: ";
// The most that Kubernetes keeps of a container's termination message.
inline constexpr size_t kSummaryBytes = 4096;

// FNV-1a 64, as 16 hexadecimal digits.
inline std::string JobLineHash(std::string_view payload) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : payload) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[(hash >> shift) & 15];
  return text;
}

// Returns the line, with its line end.
inline std::string FormatJobLine(const JobLine& line) {
  const std::string head = line.kind + ' ' + line.point_id + ' ' + std::to_string(line.payload.size());
  return std::string(kJobLineMark) + head + ' ' + Checksum(head, line.payload) + ' ' + line.payload + '\n';
}

// Parses one line, without its line end. Returns nothing if it is not such a line, or is damaged.
inline std::optional<JobLine> ParseJobLine(std::string_view text) {
  if (!text.starts_with(kJobLineMark)) return std::nullopt;
  text.remove_prefix(kJobLineMark.size());
  const char* const head = text.data();
  std::string_view words[4];
  for (std::string_view& word : words) {
    const size_t space = text.find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    word = text.substr(0, space);
    text.remove_prefix(space + 1);
  }
  size_t bytes = 0;
  const char* const end = words[2].data() + words[2].size();
  if (std::from_chars(words[2].data(), end, bytes).ptr != end || bytes != text.size()) return std::nullopt;
  constexpr size_t kEarlierDigits = 16;
  if (words[3] != (words[3].size() == kEarlierDigits ? JobLineHash(text) : Checksum({head, end}, text))) {
    return std::nullopt;
  }
  return JobLine{std::string(words[0]), std::string(words[1]), std::string(text)};
}

}  // namespace ridgeline

#endif  // RIDGELINE_JOB_LINE_H_
