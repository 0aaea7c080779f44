// The view in which a row is typed, pasted or drawn, and coded.

const CODER_TEXT =
  "The coder is “mdl” of bitatoms from empty codes: it toggles the pattern that gains most at the prices of the " +
  "model, and swaps patterns where no toggle gains. In Python it is Model.greedy_codes. The fit and transform search " +
  "longer, and may find other codes.";

function makeCoding(explorer, panel) {
  const { data } = explorer;
  const described = { "aria-describedby": "typed-help typed-note" };
  const text = element("textarea", { id: "typed", rows: 5, spellcheck: "false", ...described });
  const note = element("p", { id: "typed-note", role: "status" });
  const editor = data.picture ? pictureEditor(data, (cells) => setCells(cells, "a drawn row")) : null;
  const help = element("p", { class: "note", id: "typed-help" },
    "The names of its ones, one per line, or separated by commas (and quoted if they contain one), with ? " +
    `before one that is unknown; or ${formatCount(data.nTableFeatures)} zeros and ones, with ? for unknown cells.`);
  let name = "the typed row";

  function setCells(cells, label) {
    name = label;
    text.value = textOfCells(data, cells);
    update();
  }
  function update() {
    const parsed = parseRow(data, text.value);
    note.textContent = parseNote(parsed);
    editor?.show(parsed.cells);
    explorer.showTyped(parsed, name);
  }
  text.addEventListener("input", () => {
    name = "the typed row";
    update();
  });
  panel.append(
    labelled("A row", text), help, editor?.box ?? "", note,
    element("p", { class: "actions" },
      button("Code it", () => explorer.showTyped(parseRow(data, text.value), name, true)),
      button("Clear", () => setCells(new Uint8Array(data.nFeatures), "the typed row"))),
    element("p", { class: "note" }, CODER_TEXT));
  return setCells;
}

// Cells as text that `parseRow` reads: names of ones; all values of pictures, and where columns are called alike.
function textOfCells(data, cells) {
  const values = new Array(data.nTableFeatures).fill("0");
  data.features.indices.forEach((column, feature) => (values[column] = "01?"[cells[feature]]));
  if (data.picture) return values.join("");
  const names = [];
  cells.forEach((cell, feature) => {
    if (cell) names.push((cell === UNKNOWN ? "?" : "") + data.featureName(feature));
  });
  const read = parseRow(data, names.join("\n")).cells;
  const isSame = cells.every((cell, feature) => cell === read[feature]);
  return isSame || data.nFeatures < data.nTableFeatures ? names.join("\n") : values.join("");
}

function parseNote(parsed) {
  const { cells, error } = parsed;
  if (error) return error;
  const nOnes = cells.reduce((n, cell) => n + (cell === 1 ? 1 : 0), 0);
  const nUnknown = cells.reduce((n, cell) => n + (cell === UNKNOWN ? 1 : 0), 0);
  const read = `Read: ${pluralize(nOnes, "one")}${nUnknown ? `, ${formatCount(nUnknown)} unknown` : ""}.`;
  return `${read} ${missingText(parsed)}`.trim();
}

// Which names are not features.
function missingText({ missing }) {
  if (!missing.length) return "";
  const what = missing.length === 1 ? "Not a feature" : "Not features";
  return `${what} of the table: ${joinNames(missing, 5)}.`;
}

// Show a row that is not in the table, or why it cannot be coded.
function typedDetail(explorer, parsed, name) {
  const { data } = explorer;
  const { cells, error, missing, nFound } = parsed;
  const problem = error || missingText(parsed);
  if (error || (missing.length && !nFound)) {
    return { title: `Not coded: ${name}`, children: [element("p", { class: "problem" }, problem)] };
  }
  const atoms = codeRow(data.model, cells);
  const states = statesOf(data, cells, atoms);
  const shown = { name, atoms, states, bits: rowBits(data, states, atoms) };
  const median = data.nRows ? [["median row of this page", `${medianBits(data)} bits`]] : [];
  return {
    title: `Coded: ${name}`,
    children: [
      problem ? element("p", { class: "problem" }, problem) : "",
      ...rowParts(explorer, shown, median),
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
  const label = "Draw the row: arrow keys move, the space bar toggles a pixel";
  const canvas = cellCanvas(width, height, label, stateColours((x, y) => pixelState(editor, x, y)));
  canvas.setAttribute("role", "application");
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
