// Makes text from outside safe for its destination. The output is also well-formed XML, so that one page is both.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace ridgeline::report {

// For HTML and SVG text, and for attributes in double quotes. Controls, direction overrides and bytes that are not
// UTF-8 become escapes (base/text.h). Line feeds and tabs stay. A carriage return before a line feed is removed.
std::string EscapeHtml(std::string_view text);

// JSON for inside a <script type="application/json">: nothing in it can end the element or open another.
std::string ScriptJson(const Json& value);

}  // namespace ridgeline::report
