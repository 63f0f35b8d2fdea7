#include "base/command_words.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

namespace ridgeline {
namespace {

constexpr std::array<std::string_view, 5> kShells = {"sh", "bash", "dash", "zsh", "ksh"};
constexpr std::array<std::string_view, 2> kPythons = {"python", "pypy"};
constexpr std::array<std::string_view, 6> kOthers = {"perl", "ruby", "node", "lua", "julia", "Rscript"};

bool Has(const auto& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// "python" from "/usr/bin/python3.11".
std::string ProgramName(const std::string& word) {
  std::string name = std::filesystem::path(word).filename();
  name.erase(name.find_last_not_of("0123456789.") + 1);
  return name;
}

// The meaning of an option for the words after it.
enum class Option { kAlone, kTakesNext, kTextIsNext, kNoFile };

Option OfShell(std::string_view option) {
  if (option == "--rcfile" || option == "--init-file") return Option::kTakesNext;
  if (option.starts_with("--")) return Option::kAlone;
  if (option.find('c') != std::string_view::npos) return Option::kTextIsNext;
  if (option == "-" || option.find('s') != std::string_view::npos) return Option::kNoFile;
  return option.find_first_of("oO") != std::string_view::npos ? Option::kTakesNext : Option::kAlone;
}

Option OfPython(std::string_view option) {
  if (option == "-") return Option::kNoFile;
  if (option == "--check-hash-based-pycs") return Option::kTakesNext;
  if (option.starts_with("--")) return Option::kAlone;
  for (size_t at = 1; at < option.size(); ++at) {
    if (option[at] == 'c' || option[at] == 'm') return Option::kNoFile;
    if (option[at] == 'W' || option[at] == 'X') return at + 1 == option.size() ? Option::kTakesNext : Option::kAlone;
  }
  return Option::kAlone;
}

bool IsOption(std::string_view word) { return word.starts_with('-') || (word.starts_with('+') && word.size() > 1); }

// The script text of a shell, which is the word `at`.
std::optional<size_t> TextOfShell(std::span<const std::string> argv, size_t at) {
  bool text_follows = false;
  for (++at; at < argv.size(); ++at) {
    if (!IsOption(argv[at]) || argv[at] == "--") {
      if (argv[at] == "--") ++at;
      return text_follows && at < argv.size() ? std::optional(at) : std::nullopt;
    }
    const Option option = OfShell(argv[at]);
    text_follows = text_follows || option == Option::kTextIsNext;
    // For "-euo pipefail -c" or "-ceuo pipefail".
    const bool sets = !argv[at].starts_with("--") && argv[at].find_first_of("oO") != std::string::npos;
    if (option == Option::kTakesNext || sets) ++at;
  }
  return std::nullopt;
}

std::optional<size_t> ScriptOf(std::span<const std::string> argv) {
  const std::string program = ProgramName(argv.front());
  const bool shell = Has(kShells, program);
  const bool python = Has(kPythons, program);
  if (!shell && !python && !Has(kOthers, program)) return std::nullopt;
  for (size_t at = 1; at < argv.size(); ++at) {
    const std::string& word = argv[at];
    if (!IsOption(word)) {
      const bool is_file = word.find('/') != std::string::npos || std::filesystem::path(word).has_extension();
      return is_file ? std::optional(at) : std::nullopt;
    }
    if (word == "--") continue;
    // Options of other programs may take the next word.
    const Option option = shell ? OfShell(word) : python ? OfPython(word) : Option::kNoFile;
    if (option == Option::kNoFile || option == Option::kTextIsNext) return std::nullopt;
    if (option == Option::kTakesNext) ++at;
  }
  return std::nullopt;
}

}  // namespace

CommandWords WordsOf(std::span<const std::string> argv) {
  CommandWords words;
  if (argv.empty()) return words;
  words.script = ScriptOf(argv);
  for (size_t at = 0; at < argv.size() && !words.shell_text; ++at) {
    if (Has(kShells, ProgramName(argv[at]))) words.shell_text = TextOfShell(argv, at);
  }
  return words;
}

std::string_view ShellWordOf(std::span<const std::string> argv) {
  constexpr std::array<std::string_view, 8> kFirst = {"source", ".", "cd", "export", "eval", "module", "ulimit", "set"};
  constexpr std::array<std::string_view, 10> kOperators = {"&&", "||", ";", "|", "&", ">", ">>", "2>&1", "&>", "<"};
  if (argv.empty()) return {};
  if (Has(kFirst, argv.front())) return argv.front();
  const auto word = std::find_if(argv.begin(), argv.end(), [&](const std::string& w) { return Has(kOperators, w); });
  return word == argv.end() ? std::string_view() : *word;
}

std::string NotForAShell(std::string_view word) {
  return fmt::format(
      "no shell runs the command, and '{}' is a shell's word: write [bash, -lc, TEXT] with all of it in TEXT", word);
}

bool IsPlainShellText(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("@%_+=:,./-").find(c) != std::string_view::npos;
  });
}

}  // namespace ridgeline
