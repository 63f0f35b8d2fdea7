#include "report/assets.h"

namespace ridgeline {

// Neither text holds < or &, so that the page is well-formed XML as it stands.
const std::string_view kPageStyle = R"(
:root { color-scheme: light dark; --line: #d8dce2; --soft: #f4f6f8; --muted: #57606a; --failed: #b3341f; }
@media (prefers-color-scheme: dark) {
  :root { --line: #323841; --soft: #1c2128; --muted: #9aa4b0; --failed: #ff8a73; }
  html { background: #14171c; color: #e6e9ed; }
}
* { box-sizing: border-box; }
body { font: 15px/1.55 system-ui, "Segoe UI", Helvetica, Arial, sans-serif; max-width: 1320px; margin: 0 auto;
  padding: 32px 28px 64px; overflow-wrap: anywhere; }
h1 { font-size: 28px; line-height: 1.2; margin: 0 0 6px; letter-spacing: -0.01em; }
h2 { font-size: 20px; margin: 48px 0 10px; padding-top: 18px; border-top: 1px solid var(--line); }
h3 { font-size: 15px; margin: 20px 0 6px; }
p { margin: 8px 0; max-width: 78ch; }
.lead { font-size: 17px; color: var(--muted); }
.facts, .note, figcaption small, caption { color: var(--muted); font-size: 13px; }
.conclusion { font-size: 16px; }
nav ul { columns: 340px; padding-left: 18px; font-size: 14px; }
a { color: inherit; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 580px), 1fr)); gap: 12px 32px;
  margin: 16px 0; align-items: start; }
figure.wide { grid-column: 1 / -1; }
figure { margin: 8px 0; max-width: 100%; }
figcaption { margin-bottom: 8px; }
figcaption small { display: block; max-width: 80ch; }
svg { max-width: 100%; height: auto; display: block; }
.scroll { overflow-x: auto; margin: 16px 0; }
table { border-collapse: collapse; border: 0; font-size: 13px; font-variant-numeric: tabular-nums;
  overflow-wrap: normal; }
caption { text-align: left; padding-bottom: 6px; }
th, td { padding: 6px 9px; border: 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td { white-space: nowrap; }
td.words { white-space: normal; min-width: 32ch; }
th { font-weight: 600; vertical-align: bottom; white-space: nowrap; }
thead td { border-bottom: 0; }
thead tr:first-child th[colspan] { text-align: left; color: var(--muted); font-weight: 500; border-bottom: 0;
  padding-bottom: 0; }
tbody tr:hover { background: var(--soft); }
tr.failed td { color: var(--failed); }
th button { all: unset; cursor: pointer; }
th button:focus-visible { outline: 2px solid currentColor; outline-offset: 2px; }
th button { position: relative; }
th button::after { position: absolute; padding-left: 2px; font-size: 11px; content: ""; }
th button:hover::after { content: "\2195"; }
th[aria-sort=ascending] button::after { content: "\2191"; }
th[aria-sort=descending] button::after { content: "\2193"; }
.environment th { text-align: left; width: 180px; }
.environment td { white-space: normal; font-family: ui-monospace, Menlo, Consolas, monospace; font-size: 12px;
  overflow-wrap: anywhere; }
@media print { body { max-width: none; padding: 0; } figure, tr { break-inside: avoid; } th button::after { content: ""; } }
)";
const std::string_view kPageStyleHash = "OiogjsUkz/06CXUNjb4U9NZ5UFbfrMlCrhcI9qidWBc=";

// Columns sort on a click. Numbers by their exact value in data-v; a missing value stays last either way.
const std::string_view kPageScript = R"(
for (const table of document.querySelectorAll('table[data-sort]')) {
  const headings = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  headings.forEach((heading, column) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener('click', () => {
      const direction = heading.getAttribute('aria-sort') === 'ascending' ? -1 : 1;
      headings.forEach((other) => other.removeAttribute('aria-sort'));
      heading.setAttribute('aria-sort', direction === 1 ? 'ascending' : 'descending');
      const key = (row) => {
        const cell = row.cells[column];
        if ('none' in cell.dataset) return null;
        return 'v' in cell.dataset ? Number(cell.dataset.v) : cell.textContent;
      };
      const compare = (a, b) => {
        if (a === null || b === null) return (a === null ? 1 : 0) - (b === null ? 1 : 0);
        if (typeof a === 'number' ? typeof b === 'number' : false) return direction * (a - b);
        return direction * String(a).localeCompare(String(b), undefined, {numeric: true});
      };
      const rows = [...table.tBodies[0].rows].map((row) => [key(row), row]);
      rows.sort((a, b) => compare(a[0], b[0]));
      table.tBodies[0].append(...rows.map((pair) => pair[1]));
    });
  });
}
)";
const std::string_view kPageScriptHash = "NniZeKAw6W+E3sCE+kzgFyro0YxxzZRBj8YtDuMn0gQ=";

}  // namespace ridgeline
