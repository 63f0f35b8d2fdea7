// What the words of a command line mean to the interpreter that they start: a script's file, or a shell's text.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ridgeline {

struct CommandWords {
  std::optional<size_t> script;      // the place of the file that an interpreter runs
  std::optional<size_t> shell_text;  // the place of the text that a shell runs, as in bash -lc TEXT
};

// `argv`: a program and its arguments. Nothing where the words do not say, as of a module (python3 -m NAME) or of an
// option that we do not know. The shell may stand anywhere, as in conda run -n ENV bash -c TEXT; the script's
// interpreter is the program itself.
CommandWords WordsOf(std::span<const std::string> argv);

// The word that only a shell understands, such as source or &&, of a command that starts none; empty where there is
// none.
std::string_view ShellWordOf(std::span<const std::string> argv);

// What to say of such a word.
std::string NotForAShell(std::string_view word);

// Whether a shell takes the text as one word with no meaning of its own: letters, digits and @%_+=:,./-
bool IsPlainShellText(std::string_view text);

}  // namespace ridgeline
