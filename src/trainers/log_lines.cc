#include "trainers/log_lines.h"

#include <algorithm>

#include "base/text.h"

namespace ridgeline::trainers {
namespace {

constexpr char kEscape = '\x1b';
constexpr char kBell = '\a';

bool IsPlain(std::string_view line) {
  return std::all_of(line.begin(), line.end(), [](char c) { return (c >= ' ' && c <= '~') || c == '\t'; });
}

// Returns the position behind the escape sequence that begins at `at` (ECMA-48): ESC [ parameters final; ESC ] text BEL
// or ESC \; else intermediates and one byte. An unfinished sequence takes the rest of its line.
size_t BehindSequence(std::string_view line, size_t at) {
  const auto behind = [&](size_t from, char first, char last) {
    while (from < line.size() && !(line[from] >= first && line[from] <= last)) ++from;
    return std::min(from + 1, line.size());
  };
  ++at;
  if (at >= line.size()) return line.size();
  if (line[at] == '[') return behind(at + 1, '@', '~');
  if (line[at] != ']') return behind(at, '0', '~');
  for (++at; at < line.size(); ++at) {
    if (line[at] == kBell) return at + 1;
    if (line[at] == kEscape) return std::min(at + 2, line.size());
  }
  return line.size();
}

std::string Readable(std::string_view line) {
  std::string text;
  for (size_t at = 0; at < line.size();) {
    const char c = line[at];
    if (c == kEscape) {
      at = BehindSequence(line, at);
      continue;
    }
    if (c == '\t' || (static_cast<unsigned char>(c) >= ' ' && c != '\x7f')) text += c;
    ++at;
  }
  return ValidUtf8(text);
}

}  // namespace

void LogLines::EndLine() {
  if (IsPlain(line_)) {
    take_(number_, line_);
  } else {
    take_(number_, Readable(line_));
  }
  line_.clear();
  cut_ = false;
}

void LogLines::Feed(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t end = std::min(bytes.find_first_of("\r\n"), bytes.size());
    const size_t room = kMaxLogLineBytes - line_.size();
    line_.append(bytes.substr(0, std::min(end, room)));
    cut_ = cut_ || end > room;
    open_ = true;
    bytes_ += static_cast<int64_t>(end);
    if (end > 0) line_end_ = bytes_;
    if (end == bytes.size()) return;
    ++bytes_;
    // The \n of \r\n only advances the line number.
    if (bytes[end] == '\r' || !line_.empty()) EndLine();
    if (bytes[end] == '\n') {
      ++number_;
      open_ = false;
    }
    bytes.remove_prefix(end + 1);
  }
}

void LogLines::End() {
  cut_ = true;
  if (!line_.empty()) EndLine();
}

}  // namespace ridgeline::trainers
