// The view in which a row is typed, pasted or drawn, and coded.

const CODER_TEXT =
  "The coder is “mdl” of bitatoms from empty codes: it toggles the pattern that gains most at the prices of the model, " +
  "and swaps patterns where no toggle gains. In Python it is Model.greedy_codes. The fit and transform search longer, and may " +
  "find other codes.";

function makeCoding(explorer, panel) {
  const { data } = explorer;
  const text = element("textarea", { id: "typed", rows: 5, spellcheck: "false", "aria-describedby": "typed-help typed-note" });
  const note = element("p", { id: "typed-note", role: "status" });
  const editor = data.picture ? pictureEditor(data, (cells) => setCells(cells, "a drawn row")) : null;
  const help = element("p", { class: "note", id: "typed-help" },
    "The names of its ones, separated by commas, semicolons or lines, with ? before a feature that is unknown; " +
    `or ${formatCount(data.nTableFeatures)} zeros and ones, with ? for unknown cells.`);
  let name = "the typed row";

  function setCells(cells, label) {
    name = label;
    text.value = textOfCells(data, cells);
    update();
  }
  function update() {
    const parsed = parseRow(data, text.value);
    note.textContent = parseNote(data, parsed);
    editor?.show(parsed.cells);
    if (!parsed.error) explorer.showTyped(parsed.cells, name);
  }
  text.addEventListener("input", () => {
    name = "the typed row";
    update();
  });
  panel.append(
    labelled("A row", text), help, editor?.box ?? "", note,
    element("p", { class: "actions" }, button("Code it", () => explorer.showTyped(parseRow(data, text.value).cells, name, true)),
      button("Clear", () => setCells(new Uint8Array(data.nFeatures), "the typed row"))),
    element("p", { class: "note" }, CODER_TEXT));
  return setCells;
}

// Cells as text that `parseRow` reads: names of ones, or all values of pictures.
function textOfCells(data, cells) {
  if (data.picture || (data.nFeatures === data.nTableFeatures && !areNamesPlain(data, cells))) {
    const values = new Array(data.nTableFeatures).fill("0");
    data.features.indices.forEach((column, feature) => (values[column] = "01?"[cells[feature]]));
    return values.join("");
  }
  const names = [];
  cells.forEach((cell, feature) => cell && names.push(cell === UNKNOWN ? `?${data.featureName(feature)}` : data.featureName(feature)));
  return names.join("\n");
}

// Whether reading the names of cells gives the same cells; not if two columns are called alike.
function areNamesPlain(data, cells) {
  return cells.every((cell, feature) => !cell || data.featureNamed.get(nameKey(data.featureName(feature))) === feature);
}

function parseNote(data, { cells, missing, error }) {
  if (error) return error;
  const nOnes = cells.reduce((n, cell) => n + (cell === 1 ? 1 : 0), 0);
  const nUnknown = cells.reduce((n, cell) => n + (cell === UNKNOWN ? 1 : 0), 0);
  const read = `Read: ${pluralize(nOnes, "one")}${nUnknown ? `, ${formatCount(nUnknown)} unknown` : ""}.`;
  if (!missing.length) return read;
  const similar = similarNames(data, missing[0], 3);
  const hint = similar.length ? ` Similar to ${missing[0]}: ${similar.join(", ")}.` : "";
  return `${read} Not a feature of the table: ${joinNames(missing, 5)}.${hint}`;
}

// Show a row that is not in the table.
function typedDetail(explorer, cells, name) {
  const { data } = explorer;
  const atoms = codeRow(data.model, cells);
  const states = statesOf(data, cells, atoms);
  const shown = { name, atoms, states, bits: rowBits(data, states, atoms) };
  const median = data.nRows ? [["median row of this page", `${medianBits(data)} bits`]] : [];
  return {
    title: `Coded: ${name}`,
    children: [
      ...rowParts(explorer, shown, median),
      element("p", { class: "note" }, CODER_TEXT),
      element("p", { class: "actions" }, saveButton("coded-row.csv", () => cellLines(data, states))),
    ],
  };
}

function medianBits(data) {
  const sorted = [...data.tenths].sort((a, b) => a - b);
  return (sorted[Math.floor((sorted.length - 1) / 2)] / 10).toFixed(1);
}

// A picture whose pixels are toggled by clicking, or by the arrow keys and the space bar.
function pictureEditor(data, onchange) {
  const [height, width] = data.picture;
  const editor = { data, cells: new Uint8Array(data.nFeatures), x: 0, y: 0, onchange };
  const canvas = cellCanvas(width, height, "", stateColours((x, y) => pixelState(editor, x, y)));
  canvas.setAttribute("role", "application");
  canvas.setAttribute("aria-label", "Draw the row: arrow keys move, the space bar toggles a pixel");
  canvas.tabIndex = 0;
  const cursor = element("div", { class: "cursor", "aria-hidden": "true" });
  const moveTo = (x, y) => {
    [editor.x, editor.y] = [clamp(x, 0, width - 1), clamp(y, 0, height - 1)];
    placeCursor(cursor, editor.x, editor.y, width, height);
  };
  canvas.addEventListener("click", (event) => {
    moveTo(...cellAt(canvas, event));
    togglePixel(editor);
  });
  canvas.addEventListener("keydown", (event) => {
    const [dx, dy] = ARROWS[event.key] ?? [0, 0];
    if (!dx && !dy && event.key !== " ") return;
    event.preventDefault();
    moveTo(editor.x + dx, editor.y + dy);
    if (event.key === " ") togglePixel(editor);
    announce(`pixel ${editor.x + 1}, ${editor.y + 1}: ${STATE_WORDS[pixelState(editor, editor.x, editor.y)]}`);
  });
  moveTo(0, 0);
  const show = (cells) => {
    editor.cells = cells;
    canvas.redraw();
  };
  return { box: element("div", { class: "editor" }, canvas, cursor), show };
}

function pixelFeature({ data }, x, y) {
  return data.featureOfColumn.get(y * data.picture[1] + x);
}

function pixelState(editor, x, y) {
  const cell = editor.cells[pixelFeature(editor, x, y)] ?? 0;
  return cell === UNKNOWN ? HIDDEN : cell ? ONE : ZERO;
}

function togglePixel(editor) {
  const feature = pixelFeature(editor, editor.x, editor.y);
  if (feature === undefined) return;
  const cells = Uint8Array.from(editor.cells);
  cells[feature] = cells[feature] === 1 ? 0 : 1;
  editor.onchange(cells);
}
