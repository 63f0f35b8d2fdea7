#include "report/assets.h"

#include <fmt/format.h>

#include "report/escape.h"

namespace ridgeline::report {

// Neither text holds < or &, so that the page is well-formed XML as it stands.
const std::string_view kPageStyle = R"(
:root { color-scheme: light dark; --line: #d8dce2; --soft: #f4f6f8; --muted: #57606a; --failed: #b3341f; }
@media (prefers-color-scheme: dark) {
  :root { --line: #323841; --soft: #1c2128; --muted: #9aa4b0; --failed: #ff8a73; }
  html { background: #14171c; color: #e6e9ed; }
}
* { box-sizing: border-box; }
body { font: 15px/1.55 system-ui, "Segoe UI", Helvetica, Arial, sans-serif; max-width: 1376px; margin: 0 auto;
  padding: 32px 28px 64px; overflow-wrap: anywhere; }
h1 { font-size: 28px; line-height: 1.2; margin: 0 0 6px; letter-spacing: -0.01em; }
h2 { font-size: 20px; line-height: 1.3; margin: 48px 0 10px; padding-top: 18px; border-top: 1px solid var(--line); }
h3 { font-size: 15px; margin: 20px 0 6px; }
p { margin: 8px 0; max-width: 78ch; }
.lead { font-size: 17px; color: var(--muted); }
.facts, .note, figcaption small, caption { color: var(--muted); font-size: 13px; }
.answer { font-size: 23px; line-height: 1.3; font-weight: 600; max-width: 60ch; margin: 14px 0; text-wrap: balance; }
.conclusion { font-size: 16px; }
nav ul { columns: 420px; column-gap: 32px; padding-left: 18px; font-size: 14px; }
nav li { break-inside: avoid; margin-bottom: 4px; }
a { color: inherit; }
.charts { display: grid; grid-template-columns: minmax(0, 1fr); gap: 12px 32px; margin: 16px 0; align-items: start; }
figure { margin: 8px 0; max-width: 100%; }
figcaption { margin-bottom: 8px; }
figcaption small { display: block; max-width: 80ch; }
svg { max-width: 100%; height: auto; display: block; }
svg text[fill="#d1432b"] { fill: var(--failed); }
.scroll { overflow-x: auto; margin: 16px 0; }
table { border-collapse: collapse; border: 0; min-width: 100%; font-size: 13px; font-variant-numeric: tabular-nums;
  overflow-wrap: normal; }
caption { text-align: left; padding-bottom: 6px; }
th, td { padding: 6px 7px; border: 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td[align] { white-space: nowrap; }
td.words { min-width: 16ch; }
th { font-weight: 600; vertical-align: bottom; white-space: nowrap; }
thead td { border-bottom: 0; }
.groups th { text-align: left; color: var(--muted); font-weight: 500; border-bottom: 0; padding-bottom: 0; }
tbody tr:hover { background: var(--soft); }
pre { white-space: pre-wrap; margin: 6px 0 0; font-size: 11px; }
tr.failed td { color: var(--failed); }
th button { all: unset; cursor: pointer; }
th button:focus-visible { outline: 2px solid currentColor; outline-offset: 2px; }
th button { position: relative; }
th button::after { position: absolute; padding-left: 2px; font-size: 11px; content: ""; }
th button:hover::after { content: "\2195"; }
th[aria-sort=ascending] button::after { content: "\2191"; }
th[aria-sort=descending] button::after { content: "\2193"; }
.environment th { text-align: left; vertical-align: top; width: 180px; }
.environment td { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: 12px;
  overflow-wrap: anywhere; }
@media (min-width: 1101px), print {
  .charts { grid-template-columns: repeat(2, minmax(0, 1fr)); }
  .full { grid-column: 1 / -1; }
  .wide[hidden] { display: block; }
  .wide + .medium { display: none; }
}
@media screen and (max-width: 560px) {
  body { padding: 20px 16px 48px; }
  h1 { font-size: 24px; }
  h2 { font-size: 18px; margin-top: 36px; }
  .answer { font-size: 19px; }
  .medium { display: none; }
  .narrow[hidden] { display: block; }
  input.fold[hidden], label.fold[hidden] { display: inline-block; font-size: 13px; margin: 8px 6px 0 0; }
  .fold ~ .scroll { margin-top: 6px; }
  .fold:not(:checked) ~ .scroll .more, .groups { display: none; }
  table { font-size: 11.5px; }
  th, td { padding: 5px 3px; }
  th { white-space: normal; font-size: 11px; }
  th[data-group]::before { content: attr(data-group) " "; }
  th[data-unit]::after { content: ", " attr(data-unit); }
  td[align] { white-space: normal; }
  .environment th { width: 100px; }
}
@page { size: landscape; margin: 12mm; }
@media print {
  :root { color-scheme: light; --line: #d8dce2; --soft: none; --muted: #57606a; --failed: #b3341f; }
  html { background: none; color: black; }
  body { max-width: none; padding: 0; font-size: 12px; }
  h1, h2, h3, .answer, caption { break-after: avoid; }
  h2 { margin-top: 24px; }
  .answer { font-size: 18px; }
  .lead, .conclusion { font-size: 13px; }
  .facts, .note, figcaption small, caption { font-size: 11px; }
  figure, tr, li, p { break-inside: avoid; }
  svg { max-height: 150mm; width: auto; }
  thead { display: table-header-group; }
  .scroll { overflow: visible; }
  table { font-size: 8.5px; }
  th, td, td[align] { padding: 3px 2px; white-space: normal; }
  td.words { min-width: 0; }
  td:not([align]) { overflow-wrap: anywhere; }
  th button { display: contents; }
  details::details-content { content-visibility: visible; height: auto; }
}
)";
const std::string_view kPageStyleHash = "USrJwi/RyN6ixGL0GTjRktGU/5Pgj54LZPcOmQDjEf4=";

// Columns sort on a click. Numbers sort by their exact value in data-v. A missing value stays last in both directions.
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

std::string PageHead(const std::string& title) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{}'; script-src "
      "'sha256-{}'; base-uri 'none'; form-action 'none'\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta name=\"color-scheme\" content=\"light dark\"/>\n<meta name=\"generator\" content=\"Ridgeline\"/>\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n",
      kPageStyleHash, kPageScriptHash, EscapeHtml(title), kPageStyle);
}

}  // namespace ridgeline::report
