// Rows that are typed or pasted: the names of their ones, or zeros and ones for all columns of the table.

const MAX_NAME_LENGTH = 80; // of names in the page; longer ones are cut
const UNKNOWN_WORDS = new Set(["?", ".", "na", "nan", "null", "none", ""]);

// Return the cells of a row, names that were not found, and what is wrong with the text, if anything.
function parseRow(data, text) {
  const values = binaryValues(text);
  const named = cellsOfNames(data, text);
  const isNamed = named.nFound > 0 && !named.missing.length; // columns may be called 0, 1, 10 ...
  return values && (values.length === data.nTableFeatures || !isNamed) ? cellsOfValues(data, values) : named;
}

// The values 0, 1 and UNKNOWN of a text of these only; null if it is something else.
function binaryValues(text) {
  const trimmed = text.replace(/^[ \r\n]+|[ \r\n]+$/g, ""); // a tab at the end is followed by a blank cell
  if (/^[01?. \r\n]+$/.test(trimmed)) return Array.from(trimmed.replace(/\s+/g, ""), valueOf);
  if (!/[,;\t]/.test(trimmed)) return null;
  const words = trimmed.split(/[,;\t\n]/).map((word) => word.trim());
  const isValue = (word) => word === "0" || word === "1" || UNKNOWN_WORDS.has(word.toLowerCase());
  return words.every(isValue) && words.some((word) => word === "0" || word === "1") ? words.map(valueOf) : null;
}

function valueOf(word) {
  return word === "1" ? 1 : word === "0" ? 0 : UNKNOWN;
}

function cellsOfValues(data, values) {
  const cells = new Uint8Array(data.nFeatures);
  if (values.length !== data.nTableFeatures) {
    const error = `There are ${values.length} values, but the table has ${data.nTableFeatures} columns.`;
    return { cells, missing: [], error };
  }
  data.features.indices.forEach((column, feature) => (cells[feature] = values[column]));
  return { cells, missing: [], error: "" };
}

// Names are separated by lines, tabs, semicolons or commas, which may also be parts of names. "?name" is unknown.
function cellsOfNames(data, text) {
  const cells = new Uint8Array(data.nFeatures);
  const missing = [];
  let nFound = 0;
  for (const line of text.split(/[\n\t]/)) {
    for (const word of wordsOfLine(data, line)) {
      const found = featureCalled(data, word);
      if (!found) missing.push(word);
      else cells[found.feature] = found.value;
      nFound += found ? 1 : 0;
    }
  }
  return { cells, missing, nFound, error: "" };
}

// Split a line at commas and semicolons, but not within the longest names.
function wordsOfLine(data, line) {
  const words = [];
  let pieces = line.split(/([,;])/);
  while (pieces.length) {
    const n = lengthOfName(data, pieces);
    words.push(pieces.slice(0, n).join("").trim());
    pieces = pieces.slice(n + 1);
  }
  return words.filter(Boolean);
}

// The number of pieces that are the longest name, or the shortest of those that the page cuts; 1 if there is no name.
function lengthOfName(data, pieces) {
  let [longest, shortestCut] = [0, 0];
  for (let n = 1; n <= pieces.length; n += 2) {
    const text = pieces.slice(0, n).join("");
    if (!featureCalled(data, text)) continue;
    if (text.trim().length <= MAX_NAME_LENGTH) longest = n;
    else shortestCut ||= n;
  }
  return longest || shortestCut || 1;
}

function featureCalled(data, word) {
  const feature = data.featureNamed.get(nameKey(word));
  if (feature !== undefined) return { feature, value: 1 };
  if (!word.trim().startsWith("?")) return null;
  const unknown = data.featureNamed.get(nameKey(word.trim().slice(1)));
  return unknown === undefined ? null : { feature: unknown, value: UNKNOWN };
}

// Names are compared without regard to case and outer spaces, and as far as the page has them.
function nameKey(name) {
  const characters = Array.from(name.trim());
  const shown = characters.length > MAX_NAME_LENGTH ? `${characters.slice(0, MAX_NAME_LENGTH - 1).join("")}…` : name.trim();
  return shown.toLowerCase();
}

// Features by name; of names that differ only by case, the first.
function namedFeatures(data) {
  const named = new Map();
  for (let feature = data.nFeatures - 1; feature >= 0; feature--) named.set(nameKey(data.featureName(feature)), feature);
  return named;
}

// Names that contain a word, to suggest instead of it.
function similarNames(data, word, most) {
  const names = [];
  const key = nameKey(word);
  for (const [name, feature] of data.featureNamed) {
    if (names.length < most && key.length > 1 && name.includes(key)) names.push(data.featureName(feature));
  }
  return names;
}
