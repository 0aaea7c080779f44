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
  const words = trimmed.split(/[,;\t\n]/).map((word) => word.trim().replace(/^"(.*)"$/, "$1"));
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
    return { cells, missing: [], nFound: 0, error };
  }
  data.features.indices.forEach((column, feature) => (cells[feature] = values[column]));
  return { cells, missing: [], nFound: values.length, error: "" };
}

// "?name" is unknown.
function cellsOfNames(data, text) {
  const cells = new Uint8Array(data.nFeatures);
  const missing = [];
  let nFound = 0;
  for (const word of wordsOf(data, text)) {
    const found = featureCalled(data, word);
    if (!found) missing.push(word);
    else cells[found.feature] = found.value;
    nFound += found ? 1 : 0;
  }
  return { cells, missing, nFound, error: "" };
}

// A line is a name, or words separated by tabs, semicolons or commas; one that contains any of them is in quotes.
const WORD = /[ \r]*(\??)(?:"((?:[^"]|"")*)"[ \r]*|([^,;\t]*))(?:[,;\t]|$)/g;

function wordsOf(data, text) {
  const word = ([, mark, quoted, plain]) => (quoted === undefined ? mark + plain : mark + quoted.replaceAll('""', '"'));
  const isName = (line) => line.length <= MAX_NAME_LENGTH && featureCalled(data, line.trim());
  const inLine = (line) => (isName(line) ? [line] : Array.from(line.matchAll(WORD), word));
  return text.split("\n").flatMap(inLine).map((each) => each.trim()).filter(Boolean);
}

function featureCalled(data, word) {
  const feature = data.featureNamed.get(nameKey(word));
  if (feature !== undefined) return { feature, value: 1 };
  const unknown = word.startsWith("?") ? data.featureNamed.get(nameKey(word.slice(1))) : undefined;
  return unknown === undefined ? null : { feature: unknown, value: UNKNOWN };
}

// Names are compared without regard to case and outer spaces, and as far as the page has them.
function nameKey(name) {
  const characters = Array.from(name.trim());
  if (characters.length <= MAX_NAME_LENGTH) return name.trim().toLowerCase();
  return `${characters.slice(0, MAX_NAME_LENGTH - 1).join("")}…`.toLowerCase();
}

// Features by name; of names that differ only by case, the first.
function namedFeatures(data) {
  const named = new Map();
  for (let feature = data.nFeatures - 1; feature >= 0; feature--) {
    named.set(nameKey(data.featureName(feature)), feature);
  }
  return named;
}
