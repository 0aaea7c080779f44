// Lists of patterns, rows and features that are searched, sorted and filtered.

const PAGE_SIZE = 100; // entries of a list that are shown at a time

const patternNumber = (query) => /^(?:pattern|atom)\s*#?(\d+)$/.exec(query)?.[1];

// Which features have the query in their names.
function featuresLike(data, query) {
  const found = new Set();
  for (let feature = 0; feature < data.nFeatures; feature++) {
    if (data.featureName(feature).toLowerCase().includes(query)) found.add(feature);
  }
  return found;
}

// Each kind: how many, what matches a query, keys to sort by (with 1 for ascending), filters, entries, lines of CSV.
const LISTS = {
  patterns: {
    noun: "pattern",
    hint: "a feature, or a number",
    size: (data) => data.nAtoms,
    matcher(data, query) {
      const features = featuresLike(data, query);
      const number = patternNumber(query) ?? query;
      return (atom) => String(atom + 1) === number || data.atomFeatures[atom].some((feature) => features.has(feature));
    },
    sorts: (data) => [
      ["number", 1, (atom) => atom],
      ...(data.atoms.saved ? [["bits saved", -1, (atom) => data.atoms.saved[atom]]] : []),
      ["rows that use it", -1, (atom) => data.atoms.uses[atom]],
      ["complete rows", -1, (atom) => data.atoms.complete[atom]],
      ["lift", -1, (atom) => data.atoms.lift[atom] ?? -1],
      ...(data.atoms.recurs ? [["how often it recurs", -1, (atom) => data.atoms.recurs[atom]]] : []),
      ["number of features", -1, (atom) => data.atomFeatures[atom].length],
      ["wrong cells", -1, (atom) => nWrongCells(data, atom)],
    ],
    filters: (data) => [
      ["all", () => true],
      ["complete in most of their rows", (atom) => 2 * data.atoms.complete[atom] > data.atoms.uses[atom]],
      ["not used", (atom) => !data.atoms.uses[atom]],
    ],
    entry: (data, atom) => ({
      title: `Pattern ${atom + 1}`,
      text: joinNames(data.atomFeatures[atom].map((feature) => memberName(data, feature)), 6),
      facts: pluralize(data.atoms.uses[atom], "row"),
    }),
    csv: patternLines,
  },
  rows: {
    noun: "row",
    hint: "a name, a feature, or pattern 3",
    size: (data) => data.nRows,
    matcher(data, query) {
      const number = patternNumber(query);
      if (number) return (row) => number <= data.nAtoms && number > 0 && hasBit(data.codes, row, number - 1);
      const feature = data.featureNamed.get(query);
      return (row) =>
        data.rowName(row).toLowerCase().includes(query) || (feature !== undefined && hasBit(data.bits, row, feature));
    },
    sorts: (data) => [
      ["order of the table", 1, (row) => row],
      ["bits, most first", -1, (row) => data.tenths[row]],
      ["bits, fewest first", 1, (row) => data.tenths[row]],
      ["wrong cells", -1, (row) => data.nWrong[row]],
      ["number of patterns", -1, (row) => onesOf(data.codes, row).length],
    ],
    filters: (data) => [
      ["all", () => true],
      ["with wrong cells", (row) => data.nWrong[row] > 0],
      ["without wrong cells", (row) => data.nWrong[row] === 0],
      ["without patterns", (row) => !onesOf(data.codes, row).length],
      ...(data.unknown ? [["with unknown cells", (row) => onesOf(data.unknown, row).length > 0]] : []),
      ...(data.groupNames ?? []).map((name, group) => [`of ${name}`, (row) => data.groups[row] === group]),
    ],
    entry: (data, row) => ({
      title: data.rowName(row),
      text: atomsText(onesOf(data.codes, row)),
      facts: `${pluralize(data.nWrong[row], "wrong cell")}, ${pluralize(Math.round(data.tenths[row] / 10), "bit")}`,
    }),
    csv: rowLines,
  },
  features: {
    noun: "feature",
    hint: "a name, or pattern 3",
    size: (data) => data.nFeatures,
    matcher(data, query) {
      const number = patternNumber(query);
      if (number) return (feature) => data.atomsOfFeature[feature].includes(number - 1);
      const features = featuresLike(data, query);
      return (feature) => features.has(feature);
    },
    sorts: (data) => [
      ["order of the table", 1, (feature) => feature],
      ...(data.genome ? [["position", 1, (feature) => data.genome.places[feature]]] : []),
      ["ones", -1, (feature) => data.features.ones[feature]],
      ["wrong cells", -1, (feature) => nWrongInFeature(data, feature)],
      ["number of patterns", -1, (feature) => data.atomsOfFeature[feature].length],
    ],
    filters: (data) => [
      ["all", () => true],
      ["in patterns", (feature) => data.atomsOfFeature[feature].length > 0],
      ["in several patterns", (feature) => data.atomsOfFeature[feature].length > 1],
      ["in no pattern", (feature) => !data.atomsOfFeature[feature].length],
    ],
    entry: (data, feature) => ({
      title: data.featureName(feature),
      text: atomsText(data.atomsOfFeature[feature]) + (data.genome ? `, ${data.genome.where[feature]}` : ""),
      facts: `${pluralize(data.features.ones[feature], "one")}, ${formatCount(nWrongInFeature(data, feature))} wrong`,
    }),
    csv: featureLines,
  },
};
const KINDS = { patterns: "pattern", rows: "row", features: "feature" }; // the view of each kind of thing

function atomsText(atoms) {
  if (!atoms.length) return "no pattern";
  const numbers = joinNames(atoms.map((atom) => String(atom + 1)), 8);
  return `${atoms.length === 1 ? "pattern" : "patterns"} ${numbers}`;
}

function patternLines(data, atoms) {
  const head = ["pattern", "rows", "complete", "lift", "bits_saved", "features"];
  return [head, ...atoms.map((atom) => [
    atom + 1,
    data.atoms.uses[atom],
    data.atoms.complete[atom],
    data.atoms.lift[atom] ?? "",
    data.atoms.saved ? data.atoms.saved[atom] : "",
    data.atomFeatures[atom].map((feature) => memberName(data, feature)).join("; "),
  ])];
}

function rowLines(data, rows) {
  const namesOf = (features) => features.map(data.featureName).join("; ");
  return [["row", "index", "bits", "patterns", "missed", "invented", "unknown"], ...rows.map((row) => {
    const { name, atoms, states, bits } = tableRow(data, row);
    const wrong = [MISSED, INVENTED, HIDDEN].map((state) => namesOf(withState(states, state)));
    return [name, data.rowIndices[row], bits, atoms.map((atom) => atom + 1).join("; "), ...wrong];
  })];
}

function featureLines(data, features) {
  const { ones, known, missed, invented } = data.features;
  return [["feature", "column", "ones", "known", "missed", "invented", "patterns"], ...features.map((feature) => [
    data.featureName(feature),
    data.features.indices[feature],
    ones[feature],
    known[feature],
    missed[feature],
    invented[feature],
    data.atomsOfFeature[feature].map((atom) => atom + 1).join("; "),
  ])];
}

// Build the view of a list; return a function that searches it.
function makeList(explorer, panel, view) {
  const { data } = explorer;
  const list = LISTS[view];
  const sorts = list.sorts(data);
  const filters = list.filters(data);
  const search = element("input", { type: "search", placeholder: list.hint, autocomplete: "off", spellcheck: "false" });
  const order = selectBox(sorts.map(([label], i) => [i, label]), refresh);
  const filter = selectBox(filters.map(([label], i) => [i, label]), refresh);
  const count = element("p", { role: "status" });
  const save = button("Save as CSV", () => saveCsv(`${view}.csv`, list.csv(data, found)));
  const entries = element("ul", { class: "entries", role: "list" });
  const holder = element("div", { class: "holder" }, entries);
  const form = element("form", { class: "controls", role: "search", "aria-label": view },
    labelled("Search", search), labelled("Sort by", order), labelled("Show", filter), count, save);
  let found = [];
  form.addEventListener("submit", (event) => event.preventDefault());
  search.addEventListener("input", refresh);
  moveByArrows(entries, "button.entry");
  panel.append(form, holder);

  function refresh() {
    found = foundIn(data, list, search.value, filters[filter.value][1], sorts[order.value]);
    count.textContent = countText(found.length, list.size(data), list.noun);
    entries.replaceChildren();
    holder.replaceChildren(entries);
    appendPaged(entries, found, (index) => entryOf(explorer, view, index), PAGE_SIZE);
    markSelected(explorer);
  }
  refresh();
  return (query) => {
    search.value = query;
    filter.value = 0;
    refresh();
  };
}

// The indices that match the query and the filter, sorted.
function foundIn(data, list, query, isWanted, [, sign, key]) {
  const wanted = query.trim().toLowerCase();
  const matches = wanted ? list.matcher(data, wanted) : () => true;
  const found = [];
  for (let index = 0; index < list.size(data); index++) if (isWanted(index) && matches(index)) found.push(index);
  const keys = new Map(found.map((index) => [index, key(index)]));
  return found.sort((a, b) => sign * (keys.get(a) - keys.get(b)) || a - b);
}

function entryOf(explorer, view, index) {
  const kind = KINDS[view];
  const { title, text, facts } = LISTS[view].entry(explorer.data, index);
  const parts = [
    element("b", null, nameElement(title)),
    element("span", { class: "entry-facts" }, facts),
    element("span", { class: "entry-text" }, nameElement(text)),
  ];
  const select = () => explorer.select(kind, index);
  return element("li", null, button(parts, select, { class: "entry", "data-key": `${kind}-${index}`, tabindex: -1 }));
}

// Mark what is selected, and let Tab reach it, or the first entry.
function markSelected(explorer) {
  const key = explorer.selected && `${explorer.selected.kind}-${explorer.selected.index}`;
  for (const entries of document.querySelectorAll(".entries")) {
    const buttons = [...entries.querySelectorAll("button.entry")];
    const current = buttons.find((each) => each.dataset.key === key);
    for (const each of buttons) {
      each.tabIndex = each === (current ?? buttons[0]) ? 0 : -1;
      if (each === current) each.setAttribute("aria-current", "true");
      else each.removeAttribute("aria-current");
    }
  }
}
