#include "report/index.h"

#include <fmt/format.h>

#include "report/assets.h"
#include "report/escape.h"

namespace ridgeline::report {

std::string RenderIndex(const std::string& title, const std::vector<IndexEntry>& entries) {
  std::string out = PageHead(title) + "<header>\n<h1>" + EscapeHtml(title) + "</h1>\n</header>\n<main>\n";
  for (const IndexEntry& entry : entries) {
    const std::string name = EscapeHtml(entry.title);
    out += "<section>\n<h2>" +
           (entry.file.empty() ? name : fmt::format("<a href=\"{}\">{}</a>", EscapeHtml(entry.file), name)) + "</h2>\n";
    if (!entry.description.empty()) out += "<p class=\"lead\">" + EscapeHtml(entry.description) + "</p>\n";
    out += "<p class=\"facts\">" + EscapeHtml(entry.counts) + "</p>\n";
    if (!entry.answers.empty()) {
      out += "<ul>\n";
      for (const std::string& answer : entry.answers) out += "<li>" + EscapeHtml(answer) + "</li>\n";
      out += "</ul>\n";
    }
    out += "</section>\n";
  }
  return out + "</main>\n</body>\n</html>\n";
}

}  // namespace ridgeline::report
