#include "local/render.h"

#include "common/shell.h"

namespace ridgeline::local {

std::string RenderScript(const plugin::Json& jobs) {
  std::string script = "#!/bin/sh\n# One job a line. To continue a job that was stopped, run its line again.\n";
  for (const plugin::Json& job : jobs) {
    std::string line;
    for (const plugin::Json& word : job.at("exec")) {
      line += (line.empty() ? "" : " ") + plugin::ShellQuote(word.get<std::string>());
    }
    script += line + "\n";
  }
  return script;
}

}  // namespace ridgeline::local
