// What a page owes to who cannot see it well, or uses a keyboard, a phone or paper, as far as a script can tell: run in
// the page by tests/serve/audit_test.cc, which says what it is not. Returns what is wrong, a line each.
// `mode` is 'screen' or 'print'; `once` also asks what is the same in every look of a page.
const [mode, once] = arguments;
const wrong = new Set();
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const short = (text) => text.replace(/\s+/g, ' ').trim().slice(0, 60);
const name = (element) => {
  const id = element.id ? `#${element.id}` : '';
  const parent = element.closest('section, figure, table, nav, main');
  return `<${element.tagName.toLowerCase()}${id}> "${short(element.textContent)}"${parent && parent.id ? ` in #${parent.id}` : ''}`;
};
const isShown = (element) => element.checkVisibility({visibilityProperty: true, contentVisibilityAuto: false})
  && element.getClientRects().length > 0;

// Words a person gets for an element, by the shortened rules of accname.
const nameOf = (element) => {
  const by = element.getAttribute('aria-labelledby');
  if (by) return by.split(/\s+/).map((id) => document.getElementById(id)?.textContent ?? '').join(' ').trim();
  if (element.getAttribute('aria-label')) return element.getAttribute('aria-label').trim();
  if (element.labels && element.labels.length) return [...element.labels].map((l) => l.textContent).join(' ').trim();
  if (element.alt) return element.alt.trim();
  const text = element.textContent.trim();
  return text && !['SELECT', 'INPUT', 'TABLE', 'svg'].includes(element.tagName) ? text : (element.title || '').trim();
};
const kActive = 'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex]';

if (once) {
  const root = document.documentElement;
  if (!document.title.trim()) wrong.add('the document has no title');
  if (!/^[a-z]{2}(-|$)/.test(root.lang)) wrong.add(`the document's language is "${root.lang}"`);
  const viewport = document.querySelector('meta[name=viewport]')?.content ?? '';
  if (!viewport.includes('width=device-width') || /user-scalable|maximum-scale/.test(viewport)) wrong.add(`viewport is "${viewport}"`);
  if (all('main').length !== 1) wrong.add(`there are ${all('main').length} <main>`);
  if (all('h1').length !== 1) wrong.add(`there are ${all('h1').length} <h1>`);
  let level = 0;
  for (const heading of all('h1, h2, h3, h4, h5, h6')) {
    const own = Number(heading.tagName[1]);
    if (own > level + 1) wrong.add(`${name(heading)} comes after a heading of level ${level}`);
    if (!heading.textContent.trim()) wrong.add(`${name(heading)} is empty`);
    level = own;
  }
  for (const child of document.body.children) {
    if (!['HEADER', 'NAV', 'MAIN', 'FOOTER', 'SCRIPT', 'NOSCRIPT'].includes(child.tagName)) wrong.add(`${name(child)} is in no landmark`);
  }
  const navs = all('nav').map(nameOf);
  if (navs.some((n) => !n) || new Set(navs).size !== navs.length) wrong.add(`<nav> are called "${navs.join('", "')}"`);

  const ids = new Set();
  for (const element of all('[id]')) {
    if (ids.has(element.id)) wrong.add(`the id "${element.id}" is there twice`);
    if (!element.id || /\s/.test(element.id)) wrong.add(`"${element.id}" is no id`);
    ids.add(element.id);
  }
  for (const attribute of ['aria-labelledby', 'aria-describedby', 'aria-controls', 'for', 'headers']) {
    for (const element of all(`[${attribute}]`)) {
      for (const id of element.getAttribute(attribute).split(/\s+/)) {
        if (!ids.has(id)) wrong.add(`${name(element)}: ${attribute} names "${id}", which is not there`);
      }
    }
  }
  for (const link of all('a[href^="#"]')) {
    if (!ids.has(decodeURIComponent(link.hash.slice(1)))) wrong.add(`${name(link)} leads nowhere`);
  }

  for (const element of all(kActive)) {
    if (!nameOf(element) && !element.matches('pre, .scroll')) wrong.add(`${name(element)} has no name`);
    if (element.tabIndex > 0) wrong.add(`${name(element)} has a tabindex above 0`);
    if (element.parentElement.closest('a[href], button')) wrong.add(`${name(element)} lies in what is clicked itself`);
    if (element.closest('[aria-hidden=true]')) wrong.add(`${name(element)} is hidden from who tabs to it`);
  }
  for (const image of all('img, [role=img], svg:not([aria-hidden=true])')) {
    if (!nameOf(image)) wrong.add(`${name(image)} has no name`);
  }
  for (const each of all('progress, meter, iframe, object, dialog')) {
    if (!nameOf(each)) wrong.add(`${name(each)} has no name`);
  }
  const kRoles = ['img', 'status', 'region', 'group', 'alert', 'note'];
  for (const element of all('[role]')) {
    if (!kRoles.includes(element.getAttribute('role'))) wrong.add(`${name(element)} has the role ${element.getAttribute('role')}`);
  }
  for (const element of all('*')) {
    for (const attribute of element.getAttributeNames()) {
      if (attribute.startsWith('on') || attribute === 'style') wrong.add(`${name(element)} has ${attribute}`);
    }
  }

  for (const table of all('table')) {
    const headings = all('th', table);
    if (!headings.length) wrong.add(`${name(table)} has no headings`);
    for (const th of headings) {
      if (!['col', 'row', 'colgroup', 'rowgroup'].includes(th.scope)) wrong.add(`${name(th)} has no scope`);
      if (!th.textContent.trim() && !th.getAttribute('aria-label')) wrong.add(`${name(th)} in ${name(table)} is an empty heading`);
    }
  }
  for (const list of all('ul, ol')) {
    for (const child of list.children) if (child.tagName !== 'LI') wrong.add(`${name(child)} lies in a list and is no item`);
  }
  for (const item of all('li')) if (!item.parentElement.matches('ul, ol')) wrong.add(`${name(item)} lies in no list`);
  for (const details of all('details')) {
    if (details.firstElementChild?.tagName !== 'SUMMARY') wrong.add(`${name(details)} has no summary`);
  }

  // Where the focus is. One of each kind is looked at.
  if (!document.hasFocus()) wrong.add('the window is not active, so no focus shows');
  const kinds = new Set();
  for (const element of all(kActive)) {
    const kind = `${element.tagName} ${element.className} ${element.type} ${element.parentElement.tagName} ${element.parentElement.className}`;
    if (kinds.has(kind) || element.disabled || !isShown(element)) continue;
    kinds.add(kind);
    element.focus({preventScroll: true, focusVisible: true});
    if (document.activeElement !== element) {
      wrong.add(`${name(element)} cannot have the focus`);
      continue;
    }
    const style = getComputedStyle(element);
    const outlined = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0;
    if (!outlined && style.boxShadow === 'none') wrong.add(`${name(element)} does not show that it has the focus`);
  }
  document.activeElement?.blur();
}

// Colours.
const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
const colours = new Map();
const parse = (text) => {  // [r, g, b, a], whatever CSS calls it
  if (!colours.has(text)) {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = '#000';
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    colours.set(text, [r, g, b, a / 255]);
  }
  return colours.get(text);
};
const over = (top, below, opacity = 1) => {
  const a = top[3] * opacity;
  return [0, 1, 2].map((i) => top[i] * a + below[i] * (1 - a)).concat(1);
};
const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
  .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
const contrast = (a, b) => {
  const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
  return (x + 0.05) / (y + 0.05);
};
const dark = mode !== 'print' && matchMedia('(prefers-color-scheme: dark)').matches;
const paper = parse(dark && getComputedStyle(document.documentElement).colorScheme.includes('dark') ? '#121212' : '#fff');
const grounds = new Map();
const ground = (element) => {
  if (!element) return paper;
  if (!grounds.has(element)) grounds.set(element, over(parse(getComputedStyle(element).backgroundColor), ground(element.parentElement)));
  return grounds.get(element);
};
const pictures = new Map();  // an svg -> the shapes in it that words may lie on
const shapesOf = (svg) => {
  if (!pictures.has(svg)) {
    pictures.set(svg, all('rect, circle, path', svg).filter((s) => !s.closest('defs, clipPath')).map((shape) => {
      const style = getComputedStyle(shape);
      return {shape, box: shape.getBoundingClientRect(), fill: style.fill, opacity: Number(style.fillOpacity)};
    }).filter((s) => s.fill !== 'none' && !s.fill.startsWith('url') && s.box.width > 0));
  }
  return pictures.get(svg);
};
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let text = walker.nextNode(); text; text = walker.nextNode()) {
  const element = text.parentElement;
  if (!text.data.trim() || element.closest('script, style, noscript, title, desc') || !isShown(element)) continue;
  const style = getComputedStyle(element);
  const svg = element.closest('svg');
  let below = ground(svg ?? element);
  let colour = parse(style.color);
  let opacity = 1;
  if (svg) {
    const box = element.getBoundingClientRect();
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    for (const {shape, box: of, fill, opacity: share} of shapesOf(svg)) {
      if (!(shape.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING)) break;
      if (x >= of.left && x <= of.right && y >= of.top && y <= of.bottom && shape.tagName !== 'path') below = over(parse(fill), below, share);
    }
    colour = parse(style.fill);
    opacity = Number(style.fillOpacity);
  }
  for (let e = element; e; e = e.parentElement) opacity *= Number(getComputedStyle(e).opacity);
  const size = parseFloat(style.fontSize);
  const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
  const found = contrast(over(colour, below, opacity), below);
  if (found < (large ? 3 : 4.5) - 0.005) {
    wrong.add(`"${short(text.data)}" has a contrast of ${found.toFixed(2)}${svg ? ` in the chart ${svg.id || nameOf(svg).slice(0, 40)}` : ''}`);
  }
}
// What tells a mark, a bar or a line from the page: 3 to 1.
for (const svg of all('svg').filter(isShown)) {
  for (const shape of all('rect, circle, path', svg)) {
    if (shape.closest('defs, clipPath') || (shape.parentElement.tagName === 'g'
        && shape.parentElement.querySelector(':scope > text'))) continue;  // its words say it
    const style = getComputedStyle(shape);
    const paints = [[style.fill, Number(style.fillOpacity)], [style.stroke, Number(style.strokeOpacity)]]
      .filter(([paint, share]) => paint !== 'none' && !paint.startsWith('url') && share > 0);
    // A pale band lies around a line that is seen.
    if (!paints.length || (shape.tagName === 'path' && Number(style.fillOpacity) < 0.2)) continue;
    const below = ground(svg);
    const best = Math.max(...paints.map(([paint, share]) => contrast(over(parse(paint), below, share), below)));
    if (best < 2.995) wrong.add(`a ${shape.tagName} of ${name(svg)} has a contrast of ${best.toFixed(2)}`);
  }
}

// Room.
const page = document.documentElement;
if (page.scrollWidth > page.clientWidth) {
  const widest = all('body *').filter((e) => isShown(e) && e.getBoundingClientRect().right > page.clientWidth + 0.5
    && !e.closest('.scroll, pre, .log')).slice(0, 2).map(name).join(' and ');
  wrong.add(`the page is ${page.scrollWidth} px wide in a window of ${page.clientWidth}: ${widest}`);
}
for (const box of all('body *')) {
  if (!isShown(box)) continue;
  const style = getComputedStyle(box);
  const scrolls = (way) => ['auto', 'scroll'].includes(way);
  const cut = box.scrollWidth > box.clientWidth + 1 && style.overflowX !== 'visible' && box.clientWidth > 0;
  const long = box.scrollHeight > box.clientHeight + 1 && style.overflowY !== 'visible' && box.clientHeight > 0;
  if (mode === 'print' && (cut || long) && box.tagName !== 'svg') wrong.add(`${name(box)} is cut`);
  if (mode !== 'print' && ((cut && scrolls(style.overflowX)) || (long && scrolls(style.overflowY)))
      && box.tabIndex < 0 && !all(kActive, box).length) {
    wrong.add(`${name(box)} scrolls, and no key does it`);
  }
  if (mode !== 'print' && cut && style.overflowX === 'hidden' && box.tagName !== 'svg') wrong.add(`${name(box)} is cut`);
}
if (mode === 'print') {
  for (const details of all('details')) {
    const inner = details.lastElementChild;
    if (inner !== details.firstElementChild && !isShown(inner)) wrong.add(`${name(details)} is not opened on paper`);
  }
  for (const cell of all('td, th')) {
    if (!isShown(cell) && !cell.closest('details')) wrong.add(`${name(cell)} is not on paper`);
    const box = cell.getBoundingClientRect();
    if (box.right > page.clientWidth + 1) wrong.add(`${name(cell)} leaves the paper`);
  }
}

// Targets: 24 px across, or 24 px apart; links among words are as large as their words.
if (mode !== 'print') {
  const targets = all(kActive).filter((e) => isShown(e) && e.tagName !== 'PRE' && !e.matches('.scroll'));
  const inline = (e) => e.tagName === 'A' && getComputedStyle(e).display === 'inline'
    && [...e.parentElement.childNodes].some((n) => n !== e && n.nodeType === Node.TEXT_NODE && n.data.trim());
  const boxes = targets.map((target) => {
    const label = target.labels && target.labels.length === 1 ? target.labels[0].getBoundingClientRect() : null;
    const own = target.getBoundingClientRect();
    return label && label.width > own.width ? {target, box: own, with: label} : {target, box: own};
  });
  const small = boxes.filter(({target, box}) => (box.width < 24 || box.height < 24) && !inline(target));
  for (const {target, box, with: label} of small) {
    if (label && label.width >= 24 && label.height >= 24) continue;
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    const close = boxes.find((other) => {
      if (other.target === target || other.target.contains(target) || target.contains(other.target)) return false;
      const o = other.box;
      if (o.width < 24 || o.height < 24) return Math.hypot(o.x + o.width / 2 - x, o.y + o.height / 2 - y) < 23.5;
      const [dx, dy] = [Math.max(o.left - x, 0, x - o.right), Math.max(o.top - y, 0, y - o.bottom)];
      return Math.hypot(dx, dy) < 11.75;
    });
    if (close) wrong.add(`${name(target)} is ${box.width.toFixed(0)} x ${box.height.toFixed(0)} px, and ${name(close.target)} is close to it`);
  }
}
return [...wrong];
