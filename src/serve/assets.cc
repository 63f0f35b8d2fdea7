// The style and the script of pages, beside those of reports (report/assets.h).
#include "serve/markup.h"

namespace ridgeline::serve {

// Neither text holds < or &, so that the page is well-formed XML as it stands.
const std::string_view kSiteStyle = R"(
nav.site { display: flex; flex-wrap: wrap; gap: 4px 20px; margin: -8px 0 26px; padding-bottom: 10px;
  border-bottom: 1px solid var(--line); font-size: 14px; }
nav.site a { text-decoration: none; color: var(--muted); padding: 4px 0; }
nav.site a:hover, nav.site a:focus-visible { text-decoration: underline; }
nav.site a[aria-current] { color: inherit; font-weight: 600; }
#live-state:empty { display: none; }
.sweep { border: 1px solid var(--line); border-radius: 8px; padding: 14px 18px 10px; margin: 16px 0; }
.sweep h2 { margin: 0 0 2px; padding: 0; border: 0; }
.sweep p { margin: 4px 0 10px; }
.shares { border-radius: 5px; background: var(--soft); }
.key { display: flex; flex-wrap: wrap; gap: 2px 16px; font-size: 13px; color: var(--muted); margin: 6px 0; padding: 0;
  list-style: none; }
.key svg { display: inline-block; margin-right: 5px; }
progress { width: 9em; height: 9px; vertical-align: middle; margin-right: 8px; accent-color: #2f6fab; }
form.filters { display: flex; flex-wrap: wrap; gap: 10px 14px; align-items: end; margin: 16px 0; }
form.filters label { display: flex; flex-direction: column; gap: 3px; font-size: 12px; color: var(--muted); }
select, input[type=text], button.do { font: inherit; font-size: 14px; padding: 5px 9px; border: 1px solid var(--line);
  border-radius: 6px; background: var(--soft); color: inherit; max-width: 17em; }
button.do { cursor: pointer; padding: 5px 14px; }
select:focus-visible, button.do:focus-visible, summary:focus-visible, a:focus-visible, pre:focus-visible {
  outline: 2px solid currentColor; outline-offset: 2px; }
.environment th, .environment td { font-size: 13px; }
pre { font: 12px/1.5 ui-monospace, Menlo, Consolas, monospace; background: var(--soft); border: 1px solid var(--line);
  border-radius: 6px; padding: 10px 12px; overflow: auto; max-height: 480px; white-space: pre-wrap; }
.log { display: flex; flex-direction: column-reverse; max-height: 480px; overflow: auto; background: var(--soft);
  border: 1px solid var(--line); border-radius: 6px; margin: 10px 0; }
.log pre { max-height: none; border: 0; margin: 0; }
details { margin: 14px 0; }
summary { cursor: pointer; font-weight: 600; }
.pages { display: flex; gap: 18px; margin: 14px 0; }
.empty { font-size: 17px; color: var(--muted); }
.tools { display: flex; max-width: none; flex-wrap: wrap; gap: 10px 18px; margin: 12px 0; font-size: 14px; align-items: center; }
@media screen and (max-width: 560px) {
  .sweep { padding: 10px 12px 6px; }
  progress { width: 4.5em; margin-right: 5px; }
  form.filters label { flex: 1 1 40%; }
  form.filters select { max-width: 100%; }
}
@media print {
  nav.site, form.filters, .tools, .pages, button.do { display: none; }
  pre, .log { max-height: none; overflow: visible; }
}
)";
const std::string_view kSiteStyleHash = "plfFOV9lxgAcNjTC9kTlYv/ZhKCBKq+gr687PhrHFcs=";

// Replaces live parts as they arrive. Without this script, a page reloads itself.
const std::string_view kSiteScript = R"(
for (const live of document.querySelectorAll('[data-events]')) {
  const state = document.getElementById('live-state');
  const events = new EventSource(live.dataset.events);
  events.addEventListener('live', (event) => {
    const open = document.activeElement === null ? '' : document.activeElement.id;
    live.innerHTML = event.data;
    state.textContent = '';
    if (open !== '') document.getElementById(open)?.focus();
  });
  events.addEventListener('error', () => {
    state.textContent = 'Not connected: this is what was last heard, and the page goes on by itself.';
  });
}
)";
const std::string_view kSiteScriptHash = "Hh7cZPHmNwNVU4tJcjk/pYW1EtWg3y+y//Xd/g61IP0=";

}  // namespace ridgeline::serve
