// The meaning of a command line's words for the interpreter that they start: a script's file, or a shell's text.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ridgeline {

struct CommandWords {
  std::optional<size_t> script;      // the index of the file that an interpreter runs
  std::optional<size_t> shell_text;  // the index of the text that a shell runs, as in bash -lc TEXT
};

// `argv`: a program and its arguments. Nothing if the words do not tell, as for a module (python3 -m NAME) or an
// unknown option. The shell may be anywhere, as in conda run -n ENV bash -c TEXT. A script's interpreter must be the
// program itself.
CommandWords WordsOf(std::span<const std::string> argv);

// A word that only a shell understands, such as source or &&, in a command that starts no shell; empty if there is
// none.
std::string_view ShellWordOf(std::span<const std::string> argv);

// The message about such a word.
std::string NotForAShell(std::string_view word);

// Whether a shell reads the text as one word without special meaning: letters, digits and @%_+=:,./-
bool IsPlainShellText(std::string_view text);

}  // namespace ridgeline
