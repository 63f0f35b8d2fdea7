#include <algorithm>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "regress/gate_forms.h"

namespace ridgeline::regress {
namespace {

constexpr size_t kLongestName = 200;   // limit for the text above the table
constexpr size_t kLeftOutBytes = 300;  // reserved for the sentence on omitted rows

// Ensures that no name notifies a person or refers to an issue.
std::string WithoutReferences(const std::string& markdown) {
  std::string out;
  for (const char c : markdown) {
    out += c;
    if (c == '@' || c == '#') out += "<!-- -->";
  }
  return out;
}

std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

std::string LeftOut(const Gate& gate, size_t shown) {
  Gate rest;
  rest.findings.assign(gate.findings.begin() + static_cast<std::ptrdiff_t>(shown), gate.findings.end());
  return fmt::format("\nThere is no room here for {}: {}.\n", CountOf(rest.findings.size(), "more finding"),
                     GateCounts(rest));
}

}  // namespace

std::string GateMarkdown(const Gate& gate, size_t most_bytes) {
  Table sides{{"head", "baseline"},
              {{ShortenToBytes(gate.head, kLongestName), ShortenToBytes(gate.baseline, kLongestName)}}};
  if (!gate.pinned.empty()) {
    sides.columns.emplace_back("pinned");
    sides.rows[0].emplace_back(ShortenToBytes(gate.pinned, kLongestName));
  }
  std::string page = fmt::format("### Ridgeline gate: {}\n\n{}\n\n{}\n", GateAnswerName(gate.answer),
                                 GateConclusion(gate), WithoutReferences(ToMarkdown(sides)));
  const std::string table = WithoutReferences(ToMarkdown(GateTable(gate)));
  const std::vector<std::string_view> lines = LinesOf(table);  // one line per row, after two for the table's head
  for (size_t i = 0; i < lines.size(); ++i) {
    const bool is_last = i + 1 == lines.size();
    if (page.size() + lines[i].size() + (is_last ? 0 : kLeftOutBytes) > most_bytes) {
      return page + LeftOut(gate, i < 2 ? 0 : i - 2);
    }
    page += lines[i];
  }
  return page;
}

}  // namespace ridgeline::regress
