// What other frameworks call what has a name of its own here: a spelling that is no slip is answered, too.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ridgeline {

// ", here 'learning_rate'", with a word where that is not the whole of it: which of `known` somebody means who says
// `name`, by a name of another framework, else by one that is spelt much like it. Empty where none is.
std::string Meant(std::string_view name, const std::vector<std::string>& known);

}  // namespace ridgeline
