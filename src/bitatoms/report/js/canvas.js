// Cells drawn as pixels, in the colours of the style sheet, light or dark.

const CELL_COLOURS = ["zero", "one", "missed", "invented", "unknown", "selected"];
const SELECTED = 5; // a right one of the selected pattern
const LEGEND = [
  ["one", "one, right"],
  ["missed", "missed: a one that the patterns do not have"],
  ["invented", "invented: a one that only the patterns have"],
  ["unknown", "unknown"],
];

// A colour of the style sheet as red, green and blue.
function colourOf(name) {
  const text = getComputedStyle(document.documentElement).getPropertyValue(`--cell-${name}`).trim();
  return [1, 3, 5].map((start) => parseInt(text.slice(start, start + 2), 16));
}

// A canvas of width × height cells whose colours are given by a function of x and y; drawn again in other modes. One
// without a label is beside the name of what it shows.
function cellCanvas(width, height, label, colours) {
  const described = label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" };
  const canvas = element("canvas", { width, height, ...described });
  canvas.redraw = () => paint(canvas, colours());
  canvas.redraw();
  return canvas;
}

function paint(canvas, colourAt) {
  const { width, height } = canvas;
  if (!width || !height) return;
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  let i = 0;
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const colour = colourAt(x, y);
      image.data[i++] = colour[0];
      image.data[i++] = colour[1];
      image.data[i++] = colour[2];
      image.data[i++] = 255;
    }
  }
  context.putImageData(image, 0, 0);
}

// Colours of cells that are given by their state.
function stateColours(stateAt) {
  return () => {
    const colours = CELL_COLOURS.map(colourOf);
    return (x, y) => colours[stateAt(x, y)];
  };
}

// Cells of a row as a picture, enlarged by an integer factor to about this side.
function pictureCanvas(data, states, label, side) {
  const [height, width] = data.picture;
  const stateAt = (x, y) => states[data.featureOfColumn.get(y * width + x)] ?? ZERO;
  const canvas = cellCanvas(width, height, label, stateColours(stateAt));
  const scale = Math.max(1, Math.floor(side / Math.max(height, width)));
  canvas.style.width = `${width * scale}px`;
  return canvas;
}

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
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

function legend(data, ...more) {
  const shown = [...LEGEND.filter(([kind]) => kind !== "unknown" || data.unknown || data.cells.unknown), ...more];
  const key = ([kind, text]) => element("span", { class: "key" }, element("i", { class: `cell-${kind}` }), text);
  return element("p", { class: "legend" }, shown.map(key));
}

function redrawAll() {
  for (const canvas of document.querySelectorAll("#explorer canvas")) canvas.redraw?.();
}
