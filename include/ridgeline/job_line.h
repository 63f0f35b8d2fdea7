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
//   piece     a piece of a longer line, since services that keep logs limit a line's length: KIND I N CHECKSUM TEXT.
//             The TEXTs of pieces 1 to N of one CHECKSUM are the payload of the line of KIND. Only in printed lines
// A result whose evidence has `awaits_nodes` was made without the parts of other nodes, because the nodes share no
// folder. The collector makes the point's one result from it when all parts have come, or, with those that have come,
// when the job is over. BYTES is the length of the payload. CHECKSUM covers all other words (checksum.h), so a line
// that was cut or damaged is ignored.
#ifndef RIDGELINE_JOB_LINE_H_
#define RIDGELINE_JOB_LINE_H_

#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
inline constexpr std::string_view kPieceLine = "piece";
inline constexpr std::string_view kJobLineMark = "ridgeline: ";
// The most that Kubernetes keeps of a container's termination message.
inline constexpr size_t kSummaryBytes = 4096;

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
  if (words[3] != Checksum({head, end}, text)) return std::nullopt;
  return JobLine{std::string(words[0]), std::string(words[1]), std::string(text)};
}

// A printed line has no more bytes. CloudWatch takes 256 KiB a line, other services take more.
inline constexpr size_t kMostPrintedBytes = size_t{200} << 10;

// Returns how many of the text's first bytes are whole characters and at most `most`; at least 1 byte, even if the text
// is no UTF-8.
inline size_t BytesOfWholeCharacters(std::string_view text, size_t most) {
  if (text.size() <= most) return text.size();
  size_t size = most;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0U) == 0x80U) --size;
  return size > 0 ? size : most;
}

// Returns the line, or the lines of its pieces, none longer than kMostPrintedBytes.
inline std::string FormatPrintedLines(const JobLine& line) {
  constexpr size_t kHeadBytes = 1024;  // more than the words before a piece
  std::string whole = FormatJobLine(line);
  if (whole.size() <= kMostPrintedBytes) return whole;
  const std::string checksum = Checksum(line.kind + ' ' + line.point_id, line.payload);
  std::vector<std::string_view> pieces;
  for (std::string_view rest = line.payload; !rest.empty(); rest.remove_prefix(pieces.back().size())) {
    pieces.push_back(rest.substr(0, BytesOfWholeCharacters(rest, kMostPrintedBytes - kHeadBytes)));
  }
  std::string lines;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const std::string head =
        line.kind + ' ' + std::to_string(i + 1) + ' ' + std::to_string(pieces.size()) + ' ' + checksum;
    lines += FormatJobLine({std::string(kPieceLine), line.point_id, head + ' ' + std::string(pieces[i])});
  }
  return lines;
}

// Joins the pieces of printed lines. Pieces of a line come in order, and other lines may come between them.
class JobLineJoiner {
 public:
  // Returns the line if it is no piece. Returns the joined line if it is the last piece, and else nothing. Keeps no
  // more than kMaxJobLineBytes: if there are more, it drops what is incomplete.
  std::optional<JobLine> Join(JobLine line) {
    if (line.kind != kPieceLine) return line;
    std::string_view rest = line.payload;
    std::string_view words[4];
    for (std::string_view& word : words) {
      const size_t space = rest.find(' ');
      if (space == std::string_view::npos) return std::nullopt;
      word = rest.substr(0, space);
      rest.remove_prefix(space + 1);
    }
    const size_t number = Number(words[1]);
    const size_t count = Number(words[2]);
    if (number == 0 || number > count) return std::nullopt;
    std::string key = std::string(words[0]) + ' ' + line.point_id + ' ' + std::string(words[3]);
    if (number == 1) Drop(key);
    if (open_.size() >= kMostOpen && !open_.contains(key)) Clear();
    Pieces& pieces = open_[key];
    if (pieces.number + 1 != number || bytes_ + rest.size() > kMaxJobLineBytes) {
      bytes_ + rest.size() > kMaxJobLineBytes ? Clear() : Drop(key);
      return std::nullopt;
    }
    pieces.text += rest;
    bytes_ += rest.size();
    pieces.number = number;
    if (number < count) return std::nullopt;
    JobLine joined{std::string(words[0]), line.point_id, std::move(pieces.text)};
    bytes_ -= joined.payload.size();
    open_.erase(key);
    if (Checksum(joined.kind + ' ' + joined.point_id, joined.payload) != words[3]) return std::nullopt;
    return joined;
  }

 private:
  static constexpr size_t kMostOpen = 1024;  // a line for each node of a job, and more

  struct Pieces {
    std::string text;
    size_t number = 0;  // of the last piece
  };

  static size_t Number(std::string_view word) {
    size_t number = 0;
    const char* const end = word.data() + word.size();
    const auto parsed = std::from_chars(word.data(), end, number);
    return parsed.ec == std::errc() && parsed.ptr == end ? number : 0;
  }
  void Drop(const std::string& key) {
    const auto found = open_.find(key);
    if (found == open_.end()) return;
    bytes_ -= found->second.text.size();
    open_.erase(found);
  }
  void Clear() {
    open_.clear();
    bytes_ = 0;
  }

  std::map<std::string, Pieces> open_;  // by kind, point and checksum
  size_t bytes_ = 0;                    // of all pieces
};

}  // namespace ridgeline

#endif  // RIDGELINE_JOB_LINE_H_
