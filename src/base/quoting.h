// Text as a literal of another language.
#pragma once

#include <string>
#include <vector>

namespace ridgeline {

// `word` as you type it in a shell. Controls that a terminal would obey become escapes ($'\x1b'), which bash, zsh and
// ksh read.
std::string ShellWord(const std::string& word);
// All words of a command, with a space between two.
std::string ShellWords(const std::vector<std::string>& argv);

// `text` as an SQL string literal.
std::string SqlText(const std::string& text);

}  // namespace ridgeline
