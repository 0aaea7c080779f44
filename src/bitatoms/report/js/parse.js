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

const SEPARATOR = /[,;\t\n]|$/g;
const QUOTED = /^(\??)"((?:[^"]|"")*)"\s*(?=[,;\t\n]|$)/; // as in CSV files: quotes are doubled within it

// Names are separated by lines, tabs, semicolons or commas, which may also be parts of names. They may be quoted.
function wordsOf(data, text) {
  const words = [];
  let rest = text.trim();
  while (rest) {
    const quoted = QUOTED.exec(rest);
    const nName = lengthOfName(data, rest);
    const length = nName || quoted?.[0].length || rest.search(SEPARATOR);
    words.push(!nName && quoted ? quoted[1] + quoted[2].replaceAll('""', '"') : rest.slice(0, length).trim());
    rest = rest.slice(length + 1).trimStart();
  }
  return words.filter(Boolean);
}

// The length of the longest name that a text begins with; of one that the page cuts, up to the next separator; or 0.
function lengthOfName(data, text) {
  let longest = 0;
  for (const { index } of text.matchAll(SEPARATOR)) {
    const word = text.slice(0, index).trim();
    const length = Array.from(word).length;
    const isName = featureCalled(data, word) !== null;
    if (isName) longest = index;
    if (isName ? length > MAX_NAME_LENGTH : length > MAX_NAME_LENGTH + 1) break; // more would be cut, too
  }
  return longest;
}

function featureCalled(data, word) {
  const feature = featureNamed(data, word);
  if (feature !== undefined) return { feature, value: 1 };
  if (!word.trim().startsWith("?")) return null;
  const unknown = featureNamed(data, word.trim().slice(1));
  return unknown === undefined ? null : { feature: unknown, value: UNKNOWN };
}

// The CSV files of the page have an apostrophe before names that a spreadsheet would run as a formula.
function featureNamed(data, name) {
  return data.featureNamed.get(nameKey(name)) ?? data.featureNamed.get(nameKey(name.replace(/^\s*'(?=[=+\-@])/, "")));
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

// Names that contain a word, to suggest instead of it.
function similarNames(data, word, most) {
  const names = [];
  const key = nameKey(word);
  for (const [name, feature] of data.featureNamed) {
    if (names.length < most && key.length > 1 && name.includes(key)) names.push(data.featureName(feature));
  }
  return names;
}
