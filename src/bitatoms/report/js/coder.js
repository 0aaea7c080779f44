// The coder "mdl" of bitatoms from empty codes: toggle the pattern that gains most at the prices of the model; where no
// toggle gains, swap a pattern for another; stop where neither gains. The lowest number wins a tie. A gain is what
// errors and uses cost before a toggle, less what they cost after it. Model.greedy_codes is the same in Python.

function coderModel(data, source) {
  const numbers = numbersOf(source, ["missed", "added", "forbidden", "uses"]);
  return {
    atoms: data.atomFeatures,
    bias: data.features.bias,
    covers: source.covers,
    missed: numbers.missed,
    added: numbers.added,
    uses: numbers.uses,
    forbidden: numbers.forbidden.some(Boolean) ? numbers.forbidden : null,
    maxAtoms: source.maxAtoms ?? Infinity,
    residualLimit: source.residualLimit,
  };
}

// The patterns that a row uses, in ascending order; its cells are 0, 1 or UNKNOWN.
function codeRow(model, cells) {
  const state = emptyCode(model, cells);
  while (state.nWrong > model.residualLimit) {
    const change = bestToggle(model, state) ?? bestSwap(model, state);
    if (!change) break;
    for (const atom of change) toggleAtom(model, state, atom);
  }
  const used = [];
  state.used.forEach((isUsed, atom) => isUsed && used.push(atom));
  return used;
}

// A row that uses no pattern. Unknown cells are never wrong and cost nothing.
function emptyCode(model, cells) {
  const target = cells.map((cell, feature) => (cell === UNKNOWN ? UNKNOWN : cell ^ model.bias[feature]));
  const priceOf = (bit, feature) => (bit === UNKNOWN ? 0 : (bit ? model.missed : model.added)[feature]);
  const price = Array.from(target, priceOf);
  return {
    target,
    price,
    counts: new Uint32Array(cells.length), // used patterns that have each feature
    wrong: target.map((bit) => (bit === 1 ? 1 : 0)),
    nWrong: target.reduce((n, bit) => n + (bit === 1 ? 1 : 0), 0),
    used: new Uint8Array(model.atoms.length),
    nUsed: 0,
    isForbidden: model.atoms.map((features) => addsForbidden(model, target, features)),
  };
}

// Whether a pattern has a feature that the row lacks, and that may not be added.
function addsForbidden(model, target, features) {
  return model.forbidden !== null && features.some((feature) => model.forbidden[feature] && target[feature] === 0);
}

// Whether toggling a pattern changes what is made of a feature that it has.
function changes(model, state, feature, adds) {
  return !model.covers || state.counts[feature] === (adds ? 0 : 1);
}

function toggleGain(model, state, atom) {
  const adds = !state.used[atom];
  let gain = adds ? -model.uses[atom] : model.uses[atom];
  for (const feature of model.atoms[atom]) {
    if (!changes(model, state, feature, adds)) continue;
    gain += state.wrong[feature] ? state.price[feature] : -state.price[feature];
  }
  return gain;
}

function toggleAtom(model, state, atom) {
  const adds = !state.used[atom];
  for (const feature of model.atoms[atom]) {
    if (changes(model, state, feature, adds) && state.target[feature] !== UNKNOWN) {
      state.wrong[feature] ^= 1;
      state.nWrong += state.wrong[feature] ? 1 : -1;
    }
    state.counts[feature] += adds ? 1 : -1;
  }
  state.used[atom] ^= 1;
  state.nUsed += adds ? 1 : -1;
}

// The pattern whose toggle gains most, and its gain, among those that are allowed.
function bestGain(model, state, isAllowed) {
  let [best, most] = [-1, 0];
  for (let atom = 0; atom < model.atoms.length; atom++) {
    if (state.isForbidden[atom] || !isAllowed(atom)) continue;
    const gain = toggleGain(model, state, atom);
    if (gain > most) [best, most] = [atom, gain];
  }
  return { best, most };
}

function bestToggle(model, state) {
  const isFull = state.nUsed >= model.maxAtoms;
  const { best } = bestGain(model, state, (atom) => !isFull || state.used[atom]);
  return best < 0 ? null : [best];
}

// The first used pattern whose replacement gains, and the best replacement. Under OR that is one that is not used.
function bestSwap(model, state) {
  for (let atom = 0; atom < model.atoms.length; atom++) {
    if (!state.used[atom]) continue;
    const gain = toggleGain(model, state, atom);
    toggleAtom(model, state, atom);
    const { best, most } = bestGain(model, state, (other) => other !== atom && !(model.covers && state.used[other]));
    toggleAtom(model, state, atom);
    if (best >= 0 && most + gain > 0) return [atom, best];
  }
  return null;
}
