// The table as a picture, rows and columns ordered so that patterns are blocks; a part of it can be enlarged.

const MAX_LINES = 400; // rows that are drawn at a time; of more, every k-th one
const MAX_COLUMNS = 1200;
const LEAST = 8; // rows and columns that are shown at least

function makeMatrix(explorer, panel) {
  const { data } = explorer;
  const { rows, features } = data.order;
  const shown = { top: 0, left: 0, height: rows.length, width: features.length, x: 0, y: 0 };
  const canvas = element("canvas", { tabindex: 0, role: "application" });
  canvas.setAttribute("aria-label", "The table: arrow keys move between cells, plus and minus zoom, Enter selects the row, f the feature");
  canvas.redraw = () => drawMatrix(explorer, canvas, shown);
  const cursor = element("div", { class: "cursor", "aria-hidden": "true" });
  const readout = element("div", { class: "readout", role: "status" });
  const extent = element("p", { class: "note" });

  function update() {
    canvas.redraw();
    const { lines, columns } = drawnOf(data, shown);
    placeCursor(cursor, drawnPosition(columns, shown.x), drawnPosition(lines, shown.y), columns.length, lines.length);
    extent.textContent = extentText(data, shown, lines, columns);
    readout.replaceChildren(...cellText(explorer, rows[shown.y], features[shown.x]));
  }
  function zoom(factor) {
    shown.height = clamp(Math.round(shown.height * factor), Math.min(LEAST, rows.length), rows.length);
    shown.width = clamp(Math.round(shown.width * factor), Math.min(LEAST, features.length), features.length);
    pan(shown.x - shown.width / 2, shown.y - shown.height / 2);
  }
  function pan(left, top) {
    shown.left = clamp(Math.round(left), 0, features.length - shown.width);
    shown.top = clamp(Math.round(top), 0, rows.length - shown.height);
    update();
  }
  function moveTo(x, y) {
    [shown.x, shown.y] = [clamp(x, 0, features.length - 1), clamp(y, 0, rows.length - 1)];
    pan(clamp(shown.left, shown.x - shown.width + 1, shown.x), clamp(shown.top, shown.y - shown.height + 1, shown.y));
  }
  const panBy = (dx, dy) => () => {
    const [left, top] = [shown.left + (dx * shown.width) / 2, shown.top + (dy * shown.height) / 2];
    pan(left, top);
    moveTo(clamp(shown.x, shown.left, shown.left + shown.width - 1), clamp(shown.y, shown.top, shown.top + shown.height - 1));
  };
  canvas.addEventListener("click", (event) => {
    const { lines, columns } = drawnOf(data, shown);
    const [x, y] = cellAt(canvas, event);
    moveTo(columns[x], lines[y]);
  });
  canvas.addEventListener("keydown", (event) => {
    const { lines, columns } = drawnOf(data, shown);
    const step = ARROWS[event.key];
    const actions = {
      "+": () => zoom(0.5),
      "-": () => zoom(2),
      Enter: () => explorer.select("row", rows[shown.y]),
      f: () => explorer.select("feature", features[shown.x]),
      PageUp: () => moveTo(shown.x, shown.y - shown.height),
      PageDown: () => moveTo(shown.x, shown.y + shown.height),
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !(step || actions[event.key])) return;
    event.preventDefault();
    if (step) moveTo(shown.x + step[0] * stepOf(columns), shown.y + step[1] * stepOf(lines));
    else actions[event.key]();
  });
  panel.append(
    element("p", null, "Rows and columns are ordered so that those of a pattern lie together. The cells of the selected pattern are marked."),
    element("p", { class: "actions" },
      button("Zoom in", () => zoom(0.5)), button("Zoom out", () => zoom(2)),
      button("←", panBy(-1, 0), { "aria-label": "left" }), button("→", panBy(1, 0), { "aria-label": "right" }),
      button("↑", panBy(0, -1), { "aria-label": "up" }), button("↓", panBy(0, 1), { "aria-label": "down" }),
      button("Save as CSV", () => saveCsv("matrix.csv", matrixLines(data, shown)))),
    element("div", { class: "grid table" }, canvas, cursor), extent, legend(data, ["selected", "one, right, of the selected pattern"]), readout);
  update();
}

// Every k-th of the indices from start, so that at most this many are drawn.
function everyKth(start, n, most) {
  const step = Math.ceil(n / most);
  return Array.from({ length: Math.ceil(n / step) }, (_, i) => start + i * step);
}

function drawnOf(data, { top, left, height, width }) {
  return { lines: everyKth(top, height, MAX_LINES), columns: everyKth(left, width, MAX_COLUMNS) };
}

const stepOf = (drawn) => (drawn.length > 1 ? drawn[1] - drawn[0] : 1);
const drawnPosition = (drawn, index) => clamp(Math.floor((index - drawn[0]) / stepOf(drawn)), 0, drawn.length - 1);

function drawMatrix(explorer, canvas, shown) {
  const { data } = explorer;
  const { lines, columns } = drawnOf(data, shown);
  [canvas.width, canvas.height] = [columns.length, lines.length];
  const features = columns.map((column) => data.order.features[column]);
  const states = lines.map((line) => matrixStates(explorer, data.order.rows[line]));
  paint(canvas, stateColours((x, y) => states[y][features[x]])());
}

// The states of a row, with the right ones of the selected pattern marked.
function matrixStates(explorer, row) {
  const { data, selected } = explorer;
  const states = rowStates(data, row);
  if (selected?.kind !== "pattern" || !hasBit(data.codes, row, selected.index)) return states;
  for (const feature of data.atomFeatures[selected.index]) if (states[feature] === ONE) states[feature] = SELECTED;
  return states;
}

function extentText(data, shown, lines, columns) {
  const part = (drawn, n, all, noun) => {
    const step = stepOf(drawn);
    return `${formatCount(n)} of ${pluralize(all, noun)}${step > 1 ? ` (one in ${step} is drawn)` : ""}`;
  };
  return `Shown: ${part(lines, shown.height, data.nRows, "row")} of this page, ${part(columns, shown.width, data.nFeatures, "feature")}.`;
}

function cellText(explorer, row, feature) {
  const { data } = explorer;
  const { atoms, states } = tableRow(data, row);
  const having = atoms.filter((atom) => data.atomFeatures[atom].includes(feature));
  const patterns = having.flatMap((atom) => [" ", selectButton(explorer, "pattern", atom, `Pattern ${atom + 1}`)]);
  return [element("p", null,
    selectButton(explorer, "row", row, data.rowName(row)), ", ",
    selectButton(explorer, "feature", feature, data.featureName(feature)), `: ${STATE_WORDS[states[feature]]}`,
    having.length ? "; of" : "", ...patterns)];
}

// The cells that are shown, rows and columns in their order.
function matrixLines(data, { top, left, height, width }) {
  const features = data.order.features.slice(left, left + width);
  const value = (row, feature) => (data.unknown && hasBit(data.unknown, row, feature) ? "" : hasBit(data.bits, row, feature));
  const lines = data.order.rows.slice(top, top + height).map((row) => [data.rowName(row), ...features.map((feature) => value(row, feature))]);
  return [["row", ...features.map(data.featureName)], ...lines];
}
