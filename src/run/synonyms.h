// Other frameworks' names for what has another name here, so that messages can answer these as well as misspellings.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ridgeline {

// Text such as ", here 'learning_rate'", with a note if that is not the whole meaning. Finds which of `known` the user
// means by `name`: by another framework's name, else by similar spelling. Empty if there is none.
std::string Meant(std::string_view name, const std::vector<std::string>& known);

}  // namespace ridgeline
