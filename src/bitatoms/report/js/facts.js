// Statements about patterns, rows and features, as values that lists, details and CSV files show.

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
    counts.lift = data.memberLifts[entry];
    counts.right = data.atoms.coded[atom] - counts.missed - counts.invented - counts.unknown;
    return counts;
  });
}

function sumOf(items, key) {
  return items.reduce((sum, item) => sum + item[key], 0);
}

function nWrongCells(data, atom) {
  const cells = patternCells(data, atom);
  return sumOf(cells, "missed") + sumOf(cells, "invented");
}

const nWrongInFeature = ({ features }, feature) => features.missed[feature] + features.invented[feature];

const LEAST_SHARE = 0.05; // of the rows of two patterns that use both, if they share no feature

// Patterns that share features with this one, or are used with it: those that share most come first.
function relatedPatterns(data, atom) {
  const own = new Set(data.atomFeatures[atom]);
  const related = [];
  for (let other = 0; other < data.nAtoms; other++) {
    if (other === atom) continue;
    let shared = 0;
    for (const feature of data.atomFeatures[other]) shared += own.has(feature) ? 1 : 0;
    const pair = { other, shared, ...usedTogether(data, atom, other) };
    const either = own.size + data.atomFeatures[other].length - shared;
    if (shared || pair.share > LEAST_SHARE) related.push({ ...pair, rank: shared / Math.max(1, either) + pair.share });
  }
  return related.sort((a, b) => b.rank - a.rank || a.other - b.other);
}

// In how many rows two patterns are used together, as a share of those that use either, and in how many by chance.
function usedTogether(data, a, b) {
  if (Math.max(a, b) >= data.nPaired) return { together: null, expected: null, share: 0 };
  const [usesA, usesB] = [data.atoms.coded[a], data.atoms.coded[b]];
  const together = data.together(a, b);
  const share = together / Math.max(1, usesA + usesB - together);
  return { together, expected: (usesA * usesB) / data.nTableRows, share };
}

function togetherText({ shared, together, expected }) {
  const features = `${pluralize(shared, "shared feature")}`;
  if (together === null) return features;
  return `${features}; used together by ${pluralize(together, "row")} (${fewText(expected)} expected)`;
}

function patternFacts(data, atom) {
  const { uses, complete, expected, lift, saved, recurs } = data.atoms;
  const facts = [
    ["used by", `${pluralize(uses[atom], "row")} (${percentText(uses[atom], data.nTableRows)})`],
    ["complete in", `${pluralize(complete[atom], "row")} (${percentText(complete[atom], data.nTableRows)})`],
    ["expected", fewText(expected[atom])],
    ["lift", liftText(lift[atom])],
    ["features", formatCount(data.atomFeatures[atom].length)],
  ];
  if (saved) facts.push(["bits saved", formatCount(saved[atom])]);
  if (recurs) facts.push(["recurs", percentText(recurs[atom], 1)]);
  return facts;
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

// The number of right and wrong cells of a pattern in a row, in the table or typed.
function cellsInRow(data, atom, states) {
  let [nRight, nWrong] = [0, 0];
  for (const feature of data.atomFeatures[atom]) {
    if (states[feature] === MISSED || states[feature] === INVENTED) nWrong++;
    else if (states[feature] !== HIDDEN) nRight++;
  }
  return { nRight, nWrong };
}

const STATE_WORDS = ["zero", "one", "missed", "invented", "unknown"];
