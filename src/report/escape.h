// Text from outside, made safe for where it lands. What comes out is also well-formed XML, so that one page is both.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace ridgeline {

// For HTML and SVG text and for attributes in double quotes. Controls, direction overrides and bytes that are not
// UTF-8 are shown as escapes (base/text.h); line feeds and tabs stay, a carriage return before a line feed goes.
std::string EscapeHtml(std::string_view text);

// JSON for inside a <script type="application/json">: nothing in it can end the element or open another.
std::string ScriptJson(const Json& value);

}  // namespace ridgeline
