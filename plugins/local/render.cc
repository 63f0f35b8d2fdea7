#include "local/render.h"

#include <algorithm>

namespace ridgeline::local {

std::string ShellQuote(const std::string& word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '/' || c == '-' || c == '_' || c == '.' || c == '=';
  });
  if (plain) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string RenderScript(const plugin::Json& jobs) {
  std::string script =
      "#!/bin/sh\n# One job a line. A job that is stopped goes on where it was when its line is run again.\n";
  for (const plugin::Json& job : jobs) {
    std::string line;
    for (const plugin::Json& word : job.at("exec")) {
      line += (line.empty() ? "" : " ") + ShellQuote(word.get<std::string>());
    }
    script += line + "\n";
  }
  return script;
}

}  // namespace ridgeline::local
