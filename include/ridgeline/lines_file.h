// A copy of a node's result and part lines (job_line.h), for services that copy files and lose logs. `ridgeline exec
// --lines DIR` writes it.
#ifndef RIDGELINE_LINES_FILE_H_
#define RIDGELINE_LINES_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace ridgeline {

inline constexpr std::string_view kLinesFileBegin = "lines.node";
inline constexpr std::string_view kLinesFileEnd = ".log";

// Each node of a job has its own name, since all of them may be copied into one folder.
inline std::string LinesFileName(int64_t node) {
  return std::string(kLinesFileBegin) + std::to_string(node) + std::string(kLinesFileEnd);
}

inline bool IsLinesFileName(std::string_view name) {
  return name.starts_with(kLinesFileBegin) && name.ends_with(kLinesFileEnd);
}

}  // namespace ridgeline

#endif  // RIDGELINE_LINES_FILE_H_
