// The page's own style and script. Each hash is the base64 SHA-256 of the text, for the page's content security
// policy: a test computes them again, and says what they must be after an edit.
#pragma once

#include <string>
#include <string_view>

namespace ridgeline::report {

extern const std::string_view kPageStyle;
extern const std::string_view kPageStyleHash;
extern const std::string_view kPageScript;
extern const std::string_view kPageScriptHash;

// A page up to the start of its body, with the style and a policy that lets the page load only itself. The caller adds
// the script.
std::string PageHead(const std::string& title);

}  // namespace ridgeline::report
