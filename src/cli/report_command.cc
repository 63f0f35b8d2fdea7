#include <unistd.h>

#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "report/index.h"
#include "report/report.h"
#include "session/defaults.h"
#include "session/say.h"
#include "session/session.h"
#include "store/store.h"

namespace ridgeline::cli {
namespace {
namespace fs = std::filesystem;

constexpr const char* kAll = "all";
constexpr std::initializer_list<const char*> kReportForms = {"md", "html", "csv", "json", "text"};

struct ReportOptions {
  std::string name;
  std::string sweep;
  std::string db = session::kDefaultDb;
  std::string format;
  std::string to;
  std::string campaign;
  std::string reports;
  std::string input;
  bool all = false;
  bool list = false;
};

// Includes the folder beside the sweep's file, if the sweep was named by its file.
std::vector<fs::path> Folders(const ReportOptions& options) {
  return session::ReportFoldersFor(options.reports, fs::path(fs::is_regular_file(options.sweep) ? options.sweep : ""));
}

// The given document, after a check that it is one; empty if none was given.
std::string InputOf(const ReportOptions& options) {
  if (options.input.empty()) return {};
  std::string text = ReadFile(options.input);
  ParseJson(text, options.input);
  return text;
}

int List(const ReportOptions& options) {
  Table table{{"report", "title", "folder"}, {}};
  for (const fs::path& folder : report::FindReports(Folders(options))) {
    std::string title;
    try {
      title = report::LoadReportFolder(folder).title;
    } catch (const Error& e) {
      title = "cannot be read: " + FirstLine(e.message());  // the other reports can still be read
    }
    table.rows.push_back({folder.filename().string(), title, folder.parent_path().string()});
  }
  if (options.format == "html") {
    throw Error(ErrorKind::kUsage, "report: --list has no form html", "say -o md, csv or json, or nothing");
  }
  session::Write(Format(table, options.format.empty() ? "text" : options.format));
  return 0;
}

// Writes one page per report, and one that lists them. A fault in one report does not prevent the others.
int ShowAll(const ReportOptions& options) {
  if (options.to.empty() || !options.format.empty()) {
    throw Error(ErrorKind::kUsage, "report: `all` writes pages into a folder", "say --to DIR, and no -o");
  }
  const fs::path to = options.to;
  store::Store store = session::OpenStore(options.db, store::Store::Mode::kReadOnly);
  report::RenderOptions render{options.sweep.empty() ? "" : session::SweepName(store, options.sweep),
                               report::ReportFormat::kHtml, options.all, options.campaign, InputOf(options)};
  MakeDirs(to);
  std::vector<report::IndexEntry> entries;
  int wrong = 0;
  for (const fs::path& folder : report::FindReports(Folders(options))) {
    const std::string name = folder.filename().string();
    report::IndexEntry& entry = entries.emplace_back(report::IndexEntry{"", name, "", "", {}});
    try {
      const report::Report report = report::LoadReportFolder(folder);
      const report::RenderedReport page = report::Render(report, store, render);
      WriteFileAtomic(to / (name + ".html"), page.bytes);
      entry = {name + ".html", report.title, report.description, page.counts, page.answers};
    } catch (const Error& e) {
      ++wrong;
      entry.counts = "It has no page: " + e.message();
      session::SayAside("{}: {}\n", name, e.message());
    }
  }
  WriteFileAtomic(to / "index.html",
                  report::RenderIndex(render.sweep.empty() ? "Reports" : "Reports of " + render.sweep, entries));
  session::Say("{}: {} pages\n", (to / "index.html").string(), entries.size() - static_cast<size_t>(wrong));
  return wrong > 0 ? ExitCode(ErrorKind::kInvalidInput) : 0;
}

int Show(const ReportOptions& options) {
  if (options.name == kAll) return ShowAll(options);
  if (options.name.empty()) {
    throw Error(ErrorKind::kUsage, "report: which one?", "ridgeline report --list shows the reports there are");
  }
  // Checks the request before anything is read.
  report::RenderOptions render;
  const bool on_terminal = options.format.empty() && options.to.empty() && ::isatty(STDOUT_FILENO) == 1;
  render.format = report::ReportFormatNamed(on_terminal ? "text" : FormOf(options.format, options.to, kReportForms));
  render.campaign = options.campaign;
  render.all_measurements = options.all;
  render.input = InputOf(options);
  const report::Report report = report::LoadReport(options.name, Folders(options));
  store::Store store = session::OpenStore(options.db, store::Store::Mode::kReadOnly);
  if (!options.sweep.empty()) render.sweep = session::SweepName(store, options.sweep);
  const report::RenderedReport rendered = report::Render(report, store, render);
  if (options.to.empty()) {
    session::Write(rendered.bytes);
    return 0;
  }
  WriteFileAtomic(options.to, rendered.bytes);
  session::Say("{}: {}\n", options.to, rendered.counts);
  return 0;
}

}  // namespace

Action ReportCommand(CLI::App& self) {
  const auto options = std::make_shared<ReportOptions>();
  self.add_option("name", options->name,
                  "the report, as --list names it; `all` renders all of them into the folder --to")
      ->type_name("REPORT");
  AddFormatOption(self, options->format, kReportForms)->default_str(kReportForms.begin()[0]);
  AddToOption(self, options->to, "FILE", "the file to write, or the folder for `all` (default: print the report)");
  self.add_option("--sweep", options->sweep, "only points of this sweep, by its name or file")->type_name("SWEEP");
  CLI::Option* all =
      self.add_flag("--all", options->all, "every measurement, not only the newest of each point and trainer");
  self.add_option("--campaign", options->campaign, "only measurements of this campaign")
      ->type_name("NAME")
      ->excludes(all);
  self.add_option("--db", options->db, "the results database")->capture_default_str()->type_name("FILE");
  AddReportsOption(self, options->reports);
  self.add_option("--input", options->input,
                  "a JSON document that the report also reads, such as a gate's answer for `regression`")
      ->type_name("FILE")
      ->check(CLI::ExistingFile);
  self.add_flag("--list", options->list, "list the reports and their folders");
  self.footer(
      "Renders results, also while a run is at work. The HTML is one file that needs nothing else: open it,"
      " mail it, archive it. CSV and JSON hold every run. HTML and Markdown say what they leave out. A "
      "report is a folder in --reports, beside the file that --sweep names, in ~/.config/ridgeline/reports "
      "or in the installation.\n\n"
      "Examples:\n"
      "  ridgeline report activation-checkpointing\n"
      "  ridgeline report activation-checkpointing --sweep demo --to report.html\n"
      "  ridgeline report all --to pages      # pages/index.html lists them\n"
      "  ridgeline report regression --input gate.json --to gate.html");
  return [options] { return options->list ? List(*options) : Show(*options); };
}

}  // namespace ridgeline::cli
