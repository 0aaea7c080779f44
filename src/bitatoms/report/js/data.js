// The data of the page: the model, some rows, and counts of all rows. Each part is decoded when it is first used.

const UNKNOWN = 2; // a cell that is neither zero nor one
// What a cell is, compared with the patterns of its row.
const [ZERO, ONE, MISSED, INVENTED, HIDDEN] = [0, 1, 2, 3, 4];

// Replace getters by their values on first use.
function lazy(target, getters) {
  for (const [name, get] of Object.entries(getters)) {
    Object.defineProperty(target, name, {
      configurable: true,
      get() {
        const value = get();
        Object.defineProperty(target, name, { value });
        return value;
      },
    });
  }
  return target;
}

// Decode all fields of an object that hold numbers.
function numbersOf(source, names) {
  return lazy({}, Object.fromEntries(names.map((name) => [name, () => decodeNumbers(source[name])])));
}

function openData(source) {
  const [nTableRows, nTableFeatures, nAtoms] = source.shape;
  const data = { nTableRows, nTableFeatures, nAtoms, nPaired: source.paired, picture: source.picture };
  openFeatures(data, source.features);
  openAtoms(data, source);
  openRows(data, source.rows);
  data.genome = source.genome && { where: source.genome.where, places: decodeNumbers(source.genome.places) };
  lazy(data, {
    model: () => coderModel(data, source.coder),
    order: () => numbersOf(source.order, ["features", "rows"]),
    rowPrices: () => rowPrices(source.coder),
  });
  return data;
}

function openFeatures(data, source) {
  const counts = numbersOf(source, ["indices", "bias", "ones", "known", "missed", "invented"]);
  data.nFeatures = counts.indices.length;
  data.features = counts;
  data.featureName = (feature) => (source.names ? source.names[feature] : `x${counts.indices[feature]}`);
  lazy(data, {
    featureOfColumn: () => new Map(counts.indices.map((column, feature) => [column, feature])),
    featureNamed: () => namedFeatures(data),
    biasFeatures: () => counts.indices.map((_, feature) => feature).filter((feature) => counts.bias[feature]),
    atomsOfFeature: () => transposed(data.atomFeatures, data.nFeatures),
  });
}

function openAtoms(data, { atoms, cells, together, paired }) {
  const { expected, lift, saved, recurs } = atoms;
  data.atoms = Object.assign(numbersOf(atoms, ["uses", "coded", "complete"]), { expected, lift, saved, recurs });
  lazy(data, {
    atomBits: () => decodeMatrix(atoms.bits, data.nFeatures),
    atomFeatures: () => listsOf(data.atomBits, data.nAtoms),
    atomStarts: () => startsOf(data.atomFeatures),
    memberLifts: () => decodeNumbers(atoms.memberLifts).map((thousandths) => thousandths / 1000),
    cells: () => ({
      missed: decodeNumbers(cells.missed),
      invented: decodeNumbers(cells.invented),
      unknown: cells.unknown && decodeNumbers(cells.unknown),
    }),
    togetherCounts: () => decodeNumbers(together),
  });
  data.together = (a, b) => data.togetherCounts[pairIndex(Math.min(a, b), Math.max(a, b), paired)];
}

function openRows(data, source) {
  lazy(data, {
    rowIndices: () => decodeNumbers(source.indices),
    rowOfIndex: () => new Map(data.rowIndices.map((index, row) => [index, row])),
    bits: () => decodeMatrix(source.bits, data.nFeatures),
    unknown: () => source.unknown && decodeMatrix(source.unknown, data.nFeatures),
    codes: () => decodeMatrix(source.codes, data.nAtoms),
    tenths: () => decodeNumbers(source.tenths),
    groups: () => source.groups && decodeNumbers(source.groups),
    usersOfAtom: () => transposed(listsOf(data.codes, data.nRows), data.nAtoms),
    nWrong: () => decodeNumbers(source.wrong),
  });
  lazy(data, { nRows: () => data.rowIndices.length });
  data.groupNames = source.groupNames;
  data.rowName = (row) => (source.names ? source.names[row] : `row ${data.rowIndices[row]}`);
}

function listsOf(matrix, nRows) {
  return Array.from({ length: nRows }, (_, row) => onesOf(matrix, row));
}

// For each of n members, the indices of the lists that have it.
function transposed(lists, n) {
  const members = Array.from({ length: n }, () => []);
  lists.forEach((list, index) => list.forEach((member) => members[member].push(index)));
  return members;
}

// Where each list begins if they follow each other.
function startsOf(lists) {
  let start = 0;
  return lists.map((list) => (start += list.length) - list.length);
}

// The index of the pair a < b among all pairs of n, row by row.
function pairIndex(a, b, n) {
  return a * n - (a * (a + 1)) / 2 + b - a - 1;
}

// The cells of a row of the table: 0, 1 or UNKNOWN.
function rowCells(data, row) {
  const cells = new Uint8Array(data.nFeatures);
  for (const feature of onesOf(data.bits, row)) cells[feature] = 1;
  if (data.unknown) for (const feature of onesOf(data.unknown, row)) cells[feature] = UNKNOWN;
  return cells;
}

// What patterns make of a row: their union or exclusive-or, on top of the bias.
function reconstruct(data, atoms) {
  const made = new Uint8Array(data.nFeatures);
  for (const atom of atoms) {
    for (const feature of data.atomFeatures[atom]) made[feature] = data.model.covers ? 1 : made[feature] ^ 1;
  }
  for (const feature of data.biasFeatures) made[feature] ^= 1;
  return made;
}

function cellState(cell, made) {
  if (cell === UNKNOWN) return HIDDEN;
  if (cell === made) return cell ? ONE : ZERO;
  return cell ? MISSED : INVENTED;
}

function statesOf(data, cells, atoms) {
  const made = reconstruct(data, atoms);
  const states = new Uint8Array(cells.length);
  for (let feature = 0; feature < cells.length; feature++) states[feature] = cellState(cells[feature], made[feature]);
  return states;
}

function rowStates(data, row) {
  return statesOf(data, rowCells(data, row), onesOf(data.codes, row));
}

// The features that have this state.
function withState(states, wanted) {
  const found = [];
  states.forEach((state, feature) => state === wanted && found.push(feature));
  return found;
}

// The bits of right and wrong cells, and of patterns that are used and not used, by how often they occurred in the fit.
function rowPrices(source) {
  const bits = (counts, totals) => counts.map((count, i) => {
    const share = (count + 0.5) / (totals[i] + 1);
    return [-Math.log2(1 - share), -Math.log2(share)];
  });
  const used = decodeNumbers(source.used);
  return {
    cells: bits(decodeNumbers(source.wrong), decodeNumbers(source.known)),
    atoms: bits(used, used.map(() => source.samples)),
    rest: source.restBits,
  };
}

// The bits that describe a row; columns that the page does not contain are zeros.
function rowBits(data, states, atoms) {
  const { cells, atoms: uses, rest } = data.rowPrices;
  let bits = rest;
  states.forEach((state, feature) => {
    if (state !== HIDDEN) bits += cells[feature][state === MISSED || state === INVENTED ? 1 : 0];
  });
  for (const [unused] of uses) bits += unused;
  for (const atom of atoms) bits += uses[atom][1] - uses[atom][0];
  return bits;
}
