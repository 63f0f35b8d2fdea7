// Text for people: sizes, durations, the nearest valid name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline {

std::string FormatBytes(int64_t bytes);                      // "15.5 GB": decimal units, three digits
std::string FormatDuration(int64_t ns);                      // "850 ms", "12.3 s", "4 min 10 s", "2 h 05 min"
std::string FormatCount(double value);                       // "6.02K", "1.24B"
std::string CountOf(int64_t number, std::string_view noun);  // "1 point", "3 points"
std::string FormatUnixTime(int64_t unix_ns);                 // "2026-02-01T12:30:05Z"

// The candidate nearest to `name` by edit distance; empty if none is near enough to be meant.
std::string Nearest(std::string_view name, const std::vector<std::string>& candidates);

// `", did you mean 'batch_size'?"`, or nothing.
std::string DidYouMean(std::string_view name, const std::vector<std::string>& candidates);

// Takes one code point off the front of `rest`. A byte that does not belong to well-formed UTF-8 is taken alone, as
// kBadCodePoint. REQUIRES: `rest` is not empty.
inline constexpr char32_t kBadCodePoint = 0x110000;
char32_t NextCodePoint(std::string_view& rest);

// True for characters that a terminal or a page obeys instead of showing: C0 and C1 controls, DEL, separators of lines
// and paragraphs, direction overrides, isolates and marks, and bytes that are not UTF-8.
bool IsControl(char32_t code_point);

// A control as it is shown everywhere: \n, \t, \r, \x1b, \u202e; a byte that is not UTF-8 as \xff. `bytes`: its
// original bytes.
std::string Escape(char32_t control, std::string_view bytes);

// Text from outside with its controls as escapes, except those in `kept`. A carriage return before a kept line feed
// stays, too. Existing escapes stay unchanged.
std::string EscapeControls(std::string_view text, std::string_view kept);

// The same for text on one line, and for text of several lines.
std::string PrintableLine(std::string_view text);
std::string PrintableText(std::string_view text);

// Makes the text well-formed UTF-8: every bad byte becomes U+FFFD.
std::string ValidUtf8(std::string_view text);

// The text, or the part of it that fits into `max_bytes` with "…" at its end, cut between code points.
std::string ShortenToBytes(std::string_view text, size_t max_bytes);
// The same, limited by code points: the space that a person sees.
std::string ShortenToCodePoints(std::string_view text, size_t max_code_points);

std::string Join(const std::vector<std::string>& parts, std::string_view separator);

// The text without the spaces at its ends.
std::string_view Trim(std::string_view text);

// `text` up to its first line break.
std::string FirstLine(const std::string& text);

}  // namespace ridgeline
