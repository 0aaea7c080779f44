// Statements about patterns, rows and features, as values that lists, details and CSV files show.

const liftText = (lift) => (lift === null ? "–" : lift < 9.95 ? `×${lift.toPrecision(2)}` : `×${formatCount(Math.round(lift))}`);

// A feature as a member of a pattern: patterns remove what the bias sets.
function memberName(data, feature) {
  const name = data.featureName(feature);
  return data.features.bias[feature] ? `not ${name}` : name;
}

function joinNames(names, most) {
  return names.slice(0, most).join(", ") + (names.length > most ? ` and ${formatCount(names.length - most)} more` : "");
}

// The cells of a pattern in all rows that use it, feature by feature.
function patternCells(data, atom) {
  const { missed, invented, unknown } = data.cells;
  return data.atomFeatures[atom].map((feature, i) => {
    const entry = data.atomStarts[atom] + i;
    const counts = { feature, missed: missed[entry], invented: invented[entry], unknown: unknown ? unknown[entry] : 0 };
    counts.right = data.atoms.coded[atom] - counts.missed - counts.invented - counts.unknown;
    return counts;
  });
}

function sumOf(items, key) {
  return items.reduce((sum, item) => sum + item[key], 0);
}

// Patterns that share features with this one, or are used with it: those that share most come first.
function relatedPatterns(data, atom) {
  const own = new Set(data.atomFeatures[atom]);
  const related = [];
  for (let other = 0; other < data.nAtoms; other++) {
    if (other === atom) continue;
    const shared = data.atomFeatures[other].filter((feature) => own.has(feature)).length;
    related.push({ other, shared, ...usedTogether(data, atom, other) });
  }
  const share = ({ other, shared }) => shared / Math.max(1, own.size + data.atomFeatures[other].length - shared);
  const rank = (pair) => share(pair) + pair.share;
  const found = related.filter((pair) => pair.shared || pair.share > 0.05);
  return found.sort((a, b) => rank(b) - rank(a) || a.other - b.other);
}

// In how many rows two patterns are used together, and in how many if uses were independent.
function usedTogether(data, a, b) {
  if (Math.max(a, b) >= data.nMapped) return { together: null, expected: null, share: 0 };
  const [usesA, usesB] = [data.atoms.coded[a], data.atoms.coded[b]];
  const together = data.together(a, b);
  return { together, expected: (usesA * usesB) / data.nTableRows, share: together / Math.max(1, usesA + usesB - together) };
}

function togetherText({ shared, together, expected }) {
  const features = `${pluralize(shared, "shared feature")}`;
  if (together === null) return features;
  const chance = expected < 9.95 ? expected.toFixed(1) : formatCount(Math.round(expected));
  return `${features}; used together by ${pluralize(together, "row")} (${chance} expected)`;
}

function patternFacts(data, atom) {
  const { uses, complete, lift, saved } = data.atoms;
  const facts = [
    ["used by", `${pluralize(uses[atom], "row")} (${percentText(uses[atom], data.nTableRows)})`],
    ["complete in", `${pluralize(complete[atom], "row")} (${percentText(complete[atom], data.nTableRows)})`],
    ["lift", liftText(lift[atom])],
    ["features", formatCount(data.atomFeatures[atom].length)],
  ];
  return data.hasSaved ? [...facts, ["bits saved", formatCount(saved[atom])]] : facts;
}

function featureFacts(data, feature) {
  const { ones, known, missed, invented } = data.features;
  const share = (n) => `${formatCount(n)} (${percentText(n, known[feature])})`;
  const facts = [
    ["ones", share(ones[feature])],
    ["missed", share(missed[feature])],
    ["invented", share(invented[feature])],
    ["patterns", formatCount(data.atomsOfFeature[feature].length)],
  ];
  const nUnknown = data.nTableRows - known[feature];
  return nUnknown ? [...facts, ["unknown", formatCount(nUnknown)]] : facts;
}

// A row of the table, as details show it.
function tableRow(data, row) {
  const states = rowStates(data, row);
  return { row, name: data.rowName(row), atoms: onesOf(data.codes, row), states, bits: data.tenths[row] / 10 };
}

// The number of right and wrong cells of a pattern in a row.
function cellsInRow(data, atom, states) {
  let [nRight, nWrong] = [0, 0];
  for (const feature of data.atomFeatures[atom]) {
    if (states[feature] === MISSED || states[feature] === INVENTED) nWrong++;
    else if (states[feature] !== HIDDEN) nRight++;
  }
  return { nRight, nWrong };
}

const STATE_WORDS = ["zero", "one", "missed", "invented", "unknown"];
