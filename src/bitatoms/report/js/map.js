// The map of patterns: each cell compares two of them. Below the diagonal, shared features; above it, shared rows.

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const MAP_TEXT =
  "Each line and each column is a pattern; similar ones are neighbours. Below the diagonal, the stronger the colour " +
  "of a cell, the more features the two patterns share; above it, the more rows use both.";
const MAP_LABEL = "Map of patterns: arrow keys move between pairs, Enter selects the pattern of the line";
const clamp = (value, least, most) => Math.max(least, Math.min(most, value));

// The cell of a canvas that an event is in.
function cellAt(canvas, event) {
  const box = canvas.getBoundingClientRect();
  const [x, y] = [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  const index = (share, n) => clamp(Math.floor(share * n), 0, n - 1);
  return [index(x, canvas.width), index(y, canvas.height)];
}

// Put a frame around one of width × height cells.
function placeCursor(cursor, x, y, width, height) {
  cursor.style.left = `${(100 * x) / width}%`;
  cursor.style.top = `${(100 * y) / height}%`;
  cursor.style.width = `${100 / width}%`;
  cursor.style.height = `${100 / height}%`;
}

// For each two of the first n patterns, the features that they share, as a share of those that either has.
function overlapShares(data, n) {
  const shares = new Float32Array(n * n);
  for (const atoms of data.atomsOfFeature) {
    for (const a of atoms) for (const b of atoms) if (a < n && b < n) shares[a * n + b]++;
  }
  const sizes = data.atomFeatures.map((features) => features.length);
  for (let a = 0; a < n; a++) {
    for (let b = 0; b < n; b++) shares[a * n + b] /= Math.max(1, sizes[a] + sizes[b] - shares[a * n + b]);
  }
  return shares;
}

function makeMap(explorer, panel) {
  const { data } = explorer;
  if (!data.nAtoms) {
    panel.append(element("p", null, "There are no patterns to compare."));
    return;
  }
  const order = data.order.atoms.filter((atom) => atom < data.nMapped);
  const n = order.length;
  const overlaps = overlapShares(data, data.nMapped);
  const canvas = cellCanvas(n, n, MAP_LABEL, mapColours(data, order, overlaps));
  canvas.setAttribute("role", "application");
  canvas.tabIndex = 0;
  const cursor = element("div", { class: "cursor", "aria-hidden": "true" });
  const readout = element("div", { class: "readout", role: "status" });
  const grid = element("div", { class: "grid square" }, canvas, cursor);
  let [x, y] = [0, 0];

  function move(toX, toY) {
    [x, y] = [clamp(toX, 0, n - 1), clamp(toY, 0, n - 1)];
    placeCursor(cursor, x, y, n, n);
    readout.replaceChildren(...pairText(explorer, order[y], order[x], overlaps));
  }
  canvas.addEventListener("click", (event) => move(...cellAt(canvas, event)));
  canvas.addEventListener("keydown", (event) => {
    const step = ARROWS[event.key];
    if (event.key === "Enter") explorer.select("pattern", order[y]);
    if (!step) return;
    event.preventDefault();
    move(x + step[0], y + step[1]);
  });
  move(0, 0);
  panel.append(element("p", null, MAP_TEXT), grid, readout, mapLegend(),
    element("p", { class: "actions" }, saveButton("pairs.csv", () => pairLines(data, order, overlaps))));
}

function mapLegend() {
  const key = (kind, text) => element("span", { class: "key" }, element("i", { class: `cell-${kind}` }), text);
  return element("p", { class: "legend" }, key("overlap", "shared features"), key("together", "shared rows"));
}

function mapColours(data, order, overlaps) {
  return () => {
    const [none, self, overlap, together] = ["zero", "one", "overlap", "together"].map(colourOf);
    const shades = [overlap, together].map((colour) => shadesOf(none, colour));
    return (x, y) => {
      if (x === y) return self;
      const [a, b] = [order[y], order[x]];
      const share = y > x ? overlaps[a * data.nMapped + b] : shareOfUsers(data, a, b);
      return shades[y > x ? 0 : 1][Math.round(255 * Math.sqrt(share))];
    };
  };
}

// 256 colours from one to another.
function shadesOf(from, to) {
  const shade = (i) => from.map((channel, c) => Math.round(channel + ((to[c] - channel) * i) / 255));
  return Array.from({ length: 256 }, (_, i) => shade(i));
}

function nShared(data, a, b, overlaps) {
  const [share, size] = [overlaps[a * data.nMapped + b], data.atomFeatures[a].length + data.atomFeatures[b].length];
  return Math.round((share * size) / (1 + share));
}

function pairText(explorer, a, b, overlaps) {
  const { data } = explorer;
  const names = (atom) => joinNames(data.atomFeatures[atom].map((feature) => memberName(data, feature)), 5);
  const line = (atom) => element("p", null, selectButton(explorer, "pattern", atom, `Pattern ${atom + 1}`), " ",
    data.picture ? atomPicture(data, atom, SMALL_SIDE) : nameElement(names(atom)));
  if (a === b) return [line(a)];
  const pair = { shared: nShared(data, a, b, overlaps), ...usedTogether(data, a, b) };
  return [line(a), line(b), element("p", null, togetherText(pair))];
}

// All pairs that have something in common.
function pairLines(data, order, overlaps) {
  const lines = [["pattern", "other", "shared_features", "rows_with_both", "expected"]];
  for (const a of order) {
    for (const b of order) {
      const [shared, pair] = [nShared(data, a, b, overlaps), usedTogether(data, a, b)];
      if (a >= b || !(shared || pair.together)) continue;
      lines.push([a + 1, b + 1, shared, pair.together, Number(pair.expected.toFixed(2))]);
    }
  }
  return lines;
}
