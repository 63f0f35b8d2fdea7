#include "cli/show_commands.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/quoting.h"
#include "base/text.h"
#include "plan/plan.h"
#include "plan/trainer.h"
#include "run/job.h"
#include "run/spec.h"
#include "session/say.h"
#include "sweep/expand.h"
#include "sweep/launch.h"

namespace ridgeline::cli {
namespace {

constexpr size_t kColumns = 80;
constexpr size_t kShortId = 8;       // as `ridgeline plan` shows ids
constexpr size_t kMostAsText = 100;  // points; for more, use JSON
constexpr size_t kMostNamed = 5;     // ids shown for one ambiguous beginning

// Wraps words into lines of kColumns, unless a word is longer. `begin` starts each line, and `end` ends each but the
// last.
class Lines {
 public:
  Lines(std::string begin, std::string end) : begin_(std::move(begin)), end_(std::move(end)) {}

  void Add(const std::string& word) {
    if (line_.empty()) {
      line_ = begin_ + word;
    } else if (line_.size() + 1 + word.size() + end_.size() <= kColumns) {
      line_ += ' ' + word;
    } else {
      Break();
      line_ = begin_ + word;
    }
  }

  void Break() {
    if (!line_.empty()) text_ += line_ + end_ + '\n';
    line_.clear();
  }

  std::string Text() const { return text_ + line_ + '\n'; }

 private:
  const std::string begin_;
  const std::string end_;
  std::string text_;
  std::string line_;
};

// A comment of one line, even if `words` has text from outside.
std::string Comment(const std::string& words) {
  Lines lines("# ", "");
  const std::string line = PrintableLine(words);
  for (size_t at = 0; at < line.size();) {
    const size_t end = std::min(line.find(' ', at), line.size());
    if (end > at) lines.Add(line.substr(at, end - at));
    at = end + 1;
  }
  return lines.Text();
}

// Shows a document over several lines. The trainer of the contract gets it in one line.
std::string Folded(const std::string& text) {
  if (text.size() <= kColumns || text.find('\n') != text.size() - 1) return text;
  const Json document = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object()) return text;
  Lines lines(" ", "");
  size_t left = document.size();
  for (const auto& [key, value] : document.items()) {
    lines.Add(fmt::format("{}: {}{}", DumpJson(key), DumpJson(value), --left > 0 ? "," : ""));
  }
  return "{\n" + lines.Text() + "}\n";
}

bool HasControls(std::string_view text) { return EscapeControls(text, "\n\t") != text; }

// The command that writes a file. It reproduces the text exactly, whatever its content.
std::string WritingOf(const std::string& path, const std::string& exact) {
  const std::string text = Folded(exact);
  if (!text.ends_with('\n') || HasControls(text)) {
    return fmt::format("printf %s {} >{}\n", ShellWord(text), ShellWord(path));
  }
  std::string end = "END";
  while (('\n' + text).find('\n' + end + '\n') != std::string::npos) end += '_';
  return fmt::format("cat >{} <<'{}'\n{}{}\n", ShellWord(path), end, text, end);
}

std::string CommandLine(const trainers::Invoked& start) {
  Lines lines("  ", " \\");
  lines.Add("env");
  lines.Break();
  for (const auto& [name, value] : start.environment) {
    lines.Add(ShellWord(name) + "=" + (value.empty() ? "" : ShellWord(value)));
    lines.Break();
  }
  for (const std::string& word : start.argv) lines.Add(ShellWord(word));
  return lines.Text().substr(2);
}

Json CommandJson(const Point& point, const node::Preview& preview) {
  const std::filesystem::path& directory = preview.start.directory;
  return {{"point", point.id},
          {"trainer", point.spec.trainer},
          {"definition", preview.definition.empty() ? Json() : Json(preview.definition)},
          {"processes", preview.processes},
          {"container", preview.container.empty() ? Json() : Json(preview.container)},
          {"directory", directory.empty() ? Json() : Json(directory.string())},
          {"environment", preview.start.environment},
          {"files", preview.files},
          {"argv", preview.start.argv},
          {"resume", preview.resume},
          {"differs", preview.differs},
          {"from_here", preview.from_here},
          {"unset", preview.unset},
          {"unknown", preview.unknown}};
}

std::string Asked(const std::string& id) { return fmt::format("--point {}", id); }

std::vector<Point> Chosen(std::vector<Point> points, const CommandsAsked& asked) {
  if (asked.point.empty()) return points;
  std::vector<std::string> ids;
  for (const Point& point : points) {
    if (point.id.starts_with(asked.point)) ids.push_back(point.id);
  }
  std::erase_if(points, [&](const Point& point) { return !point.id.starts_with(asked.point); });
  if (points.empty()) {
    throw Error(ErrorKind::kUsage, fmt::format("{}: the sweep has no point whose id begins so", Asked(asked.point)),
                "`ridgeline plan SWEEP` shows the points with their ids");
  }
  if (points.size() > 1) {
    const size_t more = ids.size() > kMostNamed ? ids.size() - kMostNamed : 0;
    ids.resize(ids.size() - more);
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: the ids of {} points begin so: {}{}", Asked(asked.point), points.size(),
                            Join(ids, ", "), more > 0 ? fmt::format(" and {} more", more) : ""),
                "give more of the id");
  }
  return points;
}

// You may name a release by its own name, by a shorter form of it, or by the name that the sweep uses.
void RequireTrainer(const sweep::Sweep& sweep, const Point& point, const CommandsAsked& asked) {
  const std::string& trainer = point.spec.trainer;
  const auto definition = sweep.trainers.Find(trainer);
  if (asked.trainer.empty() || asked.trainer == trainer) return;
  if (definition && (asked.trainer == definition->name || !ReleaseAfter(asked.trainer, definition->name).empty())) {
    return;
  }
  throw Error(ErrorKind::kUsage,
              fmt::format("{}: the point's trainer is {}, not {}", Asked(asked.point), trainer, asked.trainer),
              fmt::format("ridgeline trainers show {}", trainer));
}

// The container image that the launcher uses for the trainer. The node decides how to run it.
std::string ContainerOf(const sweep::Launch& launch) {
  const auto own = launch.config.find(launch.launcher);
  if (own == launch.config.end() || !own->is_object()) return {};
  const bool is_ours = launch.definition == nullptr && IsOurTrainer(launch.trainer);
  for (const char* name : {"container", "trainer_image", "image"}) {
    // Our own trainer lies beside exec, in the same image.
    if (is_ours && name != std::string_view("image")) continue;
    const auto image = own->find(name);
    if (image != own->end() && image->is_string()) return image->get<std::string>();
  }
  return {};
}

node::Preview PreviewOfPoint(const sweep::Sweep& sweep, const Point& point) {
  const sweep::Launch launch = sweep::LaunchOf(sweep, point);
  plan::RequireScheduler(sweep, launch);
  try {
    node::Preview preview = node::PreviewOf(plan::JobFor(sweep, point, {}), launch.definition);
    preview.container = ContainerOf(launch);
    return preview;
  } catch (const Error& e) {
    throw Error(e.kind(), fmt::format("point {}: {}", point.id, e.message()), e.hint());
  }
}

}  // namespace

std::string CommandText(const std::string& point, const node::Preview& preview) {
  std::string text = Comment(point);
  if (!preview.definition.empty()) text += Comment("definition " + preview.definition);
  text += Comment(preview.processes);
  if (!preview.container.empty()) text += Comment("Started in a container of: " + preview.container);
  if (!preview.differs.empty()) text += Comment("The others differ in: " + Join(preview.differs, ", "));
  if (!preview.unknown.empty()) text += Comment("Known on the node alone: " + Join(preview.unknown, ", "));
  if (!preview.from_here.empty()) text += Comment("From this machine's environment: " + Join(preview.from_here, ", "));
  if (!preview.unset.empty()) text += Comment("Not set here: " + Join(preview.unset, ", "));
  if (!preview.resume.empty()) {
    text += Comment("Behind it where the checkpoint folder holds something: " + ShellWords(preview.resume));
  }
  for (const auto& [path, content] : preview.files) text += WritingOf(path, content);
  if (!preview.start.directory.empty()) text += fmt::format("cd {}\n", ShellWord(preview.start.directory));
  return text + CommandLine(preview.start);
}

void ShowCommands(const sweep::Sweep& sweep, const CommandsAsked& asked) {
  sweep::Expansion expansion;
  const std::vector<Point> points = Chosen(sweep::Expand(sweep, &expansion), asked);
  if (!asked.point.empty()) RequireTrainer(sweep, points.front(), asked);
  const bool as_text = asked.format == "text";
  const size_t shown = as_text ? std::min(points.size(), kMostAsText) : points.size();
  const std::vector<const Field*> varying = sweep::VaryingFields(sweep);
  if (asked.format == "json") session::Write("[");
  for (size_t i = 0; i < shown; ++i) {
    const node::Preview preview = PreviewOfPoint(sweep, points[i]);
    if (as_text) {
      const std::string label = PointName(points[i].spec, varying);
      session::Write((i > 0 ? "\n" : "") +
                     CommandText(fmt::format("point {}: {}", points[i].id.substr(0, kShortId), label), preview));
    } else {
      const bool lines = asked.format == "jsonl";
      session::Write((lines   ? ""
                      : i > 0 ? ",\n"
                              : "\n") +
                     ShowJson(CommandJson(points[i], preview), lines ? -1 : 1) + (lines ? "\n" : ""));
    }
  }
  if (asked.format == "json") session::Write("\n]\n");
  for (const std::string& warning : expansion.warnings) session::SayAside("warning: {}\n", warning);
  if (shown < points.size()) {
    session::SayAside("{} more points are not shown: name one as --point ID, or read them all with -o jsonl\n",
                      points.size() - shown);
  }
}

}  // namespace ridgeline::cli
