// The table as a picture, rows and columns ordered so that patterns are blocks; a part of it can be enlarged.

const MAX_LINES = 400; // rows that are drawn at a time; of more, every k-th one
const MAX_COLUMNS = 1200;
const LEAST = 8; // rows and columns that are shown at least

function makeMatrix(explorer, panel) {
  const view = matrixView(explorer);
  listenToMatrix(explorer, view);
  const text =
    "Rows and columns are ordered so that those of a pattern lie together. The cells of the selected pattern are " +
    "marked.";
  const selected = ["selected", "one, right, of the selected pattern"];
  panel.append(
    element("p", null, text), matrixButtons(explorer, view),
    element("div", { class: "grid table" }, view.canvas, view.cursor),
    view.extent, legend(explorer.data, selected), view.readout);
  updateMatrix(explorer, view);
}

// The elements, and what is shown: the part of the ordered table, and the cell of the cursor in it.
function matrixView({ data }) {
  const label = "The table: arrow keys move between cells, plus and minus zoom, Enter selects the row, f the feature";
  return {
    canvas: element("canvas", { tabindex: 0, role: "application", "aria-label": label }),
    cursor: element("div", { class: "cursor", "aria-hidden": "true" }),
    readout: element("div", { class: "readout", role: "status" }),
    extent: element("p", { class: "note" }),
    shown: { top: 0, left: 0, height: data.nRows, width: data.nFeatures, x: 0, y: 0 },
  };
}

function matrixButtons(explorer, view) {
  const pan = (label, name, dx, dy) => button(label, () => panMatrix(explorer, view, dx, dy), { "aria-label": name });
  return element("p", { class: "actions" },
    button("Zoom in", () => zoomMatrix(explorer, view, 0.5)), button("Zoom out", () => zoomMatrix(explorer, view, 2)),
    pan("←", "left", -1, 0), pan("→", "right", 1, 0), pan("↑", "up", 0, -1), pan("↓", "down", 0, 1));
}

function listenToMatrix(explorer, view) {
  const { canvas, shown } = view;
  canvas.redraw = () => drawMatrix(explorer, canvas, shown);
  canvas.addEventListener("click", (event) => {
    const { lines, columns } = drawnOf(shown);
    const [x, y] = cellAt(canvas, event);
    moveInMatrix(explorer, view, columns[x], lines[y]);
  });
  canvas.addEventListener("keydown", (event) => {
    const action = matrixAction(explorer, view, event.key);
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  });
}

// What a key does, if anything.
function matrixAction(explorer, view, key) {
  const { x, y, height } = view.shown;
  const { lines, columns } = drawnOf(view.shown);
  const { rows, features } = explorer.data.order;
  const move = (dx, dy) => () => moveInMatrix(explorer, view, x + dx * stepOf(columns), y + dy * stepOf(lines));
  if (ARROWS[key]) return move(...ARROWS[key]);
  return {
    "+": () => zoomMatrix(explorer, view, 0.5),
    "-": () => zoomMatrix(explorer, view, 2),
    Enter: () => explorer.select("row", rows[y]),
    f: () => explorer.select("feature", features[x]),
    PageUp: () => moveInMatrix(explorer, view, x, y - height),
    PageDown: () => moveInMatrix(explorer, view, x, y + height),
  }[key];
}

function updateMatrix(explorer, { canvas, cursor, extent, readout, shown }) {
  const { data } = explorer;
  const { lines, columns } = drawnOf(shown);
  canvas.redraw();
  placeCursor(cursor, drawnPosition(columns, shown.x), drawnPosition(lines, shown.y), columns.length, lines.length);
  extent.textContent = extentText(data, shown, lines, columns);
  readout.replaceChildren(...cellText(explorer, data.order.rows[shown.y], data.order.features[shown.x]));
}

// Show another part of the table, as large as the present one.
function showPart(explorer, view, left, top) {
  const { shown } = view;
  shown.left = clamp(Math.round(left), 0, explorer.data.nFeatures - shown.width);
  shown.top = clamp(Math.round(top), 0, explorer.data.nRows - shown.height);
  updateMatrix(explorer, view);
}

function zoomMatrix(explorer, view, factor) {
  const { nRows, nFeatures } = explorer.data;
  const { shown } = view;
  const scaled = (size, all) => clamp(Math.round(size * factor), Math.min(LEAST, all), all);
  [shown.height, shown.width] = [scaled(shown.height, nRows), scaled(shown.width, nFeatures)];
  showPart(explorer, view, shown.x - shown.width / 2, shown.y - shown.height / 2);
}

// Move the cursor, and what is shown as far as needed.
function moveInMatrix(explorer, view, x, y) {
  const { shown } = view;
  [shown.x, shown.y] = [clamp(x, 0, explorer.data.nFeatures - 1), clamp(y, 0, explorer.data.nRows - 1)];
  const left = clamp(shown.left, shown.x - shown.width + 1, shown.x);
  showPart(explorer, view, left, clamp(shown.top, shown.y - shown.height + 1, shown.y));
}

// Move what is shown by half of its size; the cursor stays within it.
function panMatrix(explorer, view, dx, dy) {
  const { shown } = view;
  showPart(explorer, view, shown.left + (dx * shown.width) / 2, shown.top + (dy * shown.height) / 2);
  const x = clamp(shown.x, shown.left, shown.left + shown.width - 1);
  moveInMatrix(explorer, view, x, clamp(shown.y, shown.top, shown.top + shown.height - 1));
}

// Every k-th of the indices from start, so that at most this many are drawn.
function everyKth(start, n, most) {
  const step = Math.ceil(n / most);
  return Array.from({ length: Math.ceil(n / step) }, (_, i) => start + i * step);
}

function drawnOf({ top, left, height, width }) {
  return { lines: everyKth(top, height, MAX_LINES), columns: everyKth(left, width, MAX_COLUMNS) };
}

const stepOf = (drawn) => (drawn.length > 1 ? drawn[1] - drawn[0] : 1);
const drawnPosition = (drawn, index) => clamp(Math.floor((index - drawn[0]) / stepOf(drawn)), 0, drawn.length - 1);

function drawMatrix(explorer, canvas, shown) {
  const { data } = explorer;
  const { lines, columns } = drawnOf(shown);
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
  const rows = part(lines, shown.height, data.nRows, "row");
  return `Shown: ${rows} of this page, ${part(columns, shown.width, data.nFeatures, "feature")}.`;
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
