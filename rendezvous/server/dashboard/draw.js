// Canvas and page helpers. Texts of the feed reach the page only by textContent and fillText, so no
// name can become markup.
function byId(id) {
  return document.getElementById(id);
}

function make(tag, text = '', className = '') {
  const element = document.createElement(tag);
  element.textContent = text;
  if (className) element.className = className;
  return element;
}

// A cell of a table; narrow screens show the label in front of the text.
function cellOf(label, text) {
  const cell = make('td', text);
  cell.dataset.label = label;
  return cell;
}

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
}

function swatch(text, name) {
  const item = make('span');
  const square = make('span', '', 'swatch');
  square.style.background = `var(--${name})`;
  item.append(square, text);
  return item;
}

// Returns a cleared 2d context of this height in CSS pixels.
function sheet(canvas, height) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth || canvas.parentElement.clientWidth;
  canvas.style.height = height + 'px';
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.font = '11px system-ui, sans-serif';
  return {context, width, height};
}

// Returns about `wanted` round numbers below `most`.
function ticks(most, wanted) {
  const raw = most / wanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(f => f * power).find(s => s >= raw);
  const all = [];
  for (let value = step; value <= most; value += step) all.push(value);
  return all;
}
