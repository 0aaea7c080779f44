// What is selected: a pattern with the rows behind it, a row with its patterns and what is left over, or a feature.

const DETAIL_PAGE = 20; // rows, features and patterns that are shown at a time
const MAX_CHIPS = 60;
const PICTURE_SIDE = 128;
const SMALL_SIDE = 56;

const DETAILS = { pattern: patternDetail, row: rowDetail, feature: featureDetail };

// Show one thing; its heading gets the focus, so that it is read and Tab goes on from there.
function showDetail(explorer, title, children, moveFocus) {
  const heading = element("h3", { tabindex: "-1" }, nameElement(title));
  const back = explorer.origin && button("Back", () => explorer.back(), { class: "back" });
  at("detail").replaceChildren(element("div", { class: "detail-head" }, heading, back ?? ""), ...children);
  if (moveFocus) {
    heading.focus({ preventScroll: true });
    at("detail").scrollIntoView({ block: "nearest" });
  }
}

function selectButton(explorer, kind, index, label) {
  return button(nameElement(label), () => explorer.select(kind, index), { class: "link" });
}

// A list that is shown in pages.
function pagedList(kind, items, makeItem, size = DETAIL_PAGE) {
  const list = element("ul", { class: kind });
  const box = element("div", null, list);
  appendPaged(list, items, makeItem, size);
  return box;
}

function saveButton(name, lines) {
  return button("Save as CSV", () => saveCsv(name, lines()));
}

// A table of cells that are text or elements; the first column has the names.
function dataTable(label, heads, lines) {
  const cell = (value, i) => element(i ? "td" : "th", { class: i ? "number" : null, scope: i ? null : "row" }, value);
  const head = heads.map((text, i) => element("th", { scope: "col", class: i ? "number" : null }, text));
  const body = element("tbody");
  const table = element("table", null, element("thead", null, element("tr", null, head)), body);
  const holder = element("div", { class: "scroll", role: "region", "aria-label": label, tabindex: 0 }, table);
  const box = element("div", null, holder);
  // The button for more lines must not be inside the table.
  const list = { append: (...items) => body.append(...items), after: (more) => holder.after(more) };
  appendPaged(list, lines, (line) => element("tr", null, line().map(cell)), DETAIL_PAGE);
  return box;
}

// --- patterns

function patternDetail(explorer, atom) {
  const { data } = explorer;
  const cells = patternCells(data, atom);
  const users = data.usersOfAtom[atom];
  return {
    title: `Pattern ${atom + 1}`,
    children: [
      data.picture ? atomPicture(data, atom, PICTURE_SIDE) : "",
      factList(patternFacts(data, atom)),
      data.genome ? element("p", { class: "note" }, spanText(data, atom)) : "",
      element("h4", null, "Cells"),
      element("p", null, cellsText(data, atom, cells)),
      featureTable(explorer, cells),
      ...relatedParts(explorer, atom),
      ...(data.nRows ? userParts(explorer, atom, users) : []),
      element("p", { class: "actions" },
        data.nRows ? button("List its rows", () => explorer.search("rows", `pattern ${atom + 1}`)) : "",
        saveButton(`pattern-${atom + 1}.csv`, () => patternCellLines(data, atom))),
    ],
  };
}

function atomPicture(data, atom, side) {
  const made = reconstruct(data, [atom]);
  return pictureCanvas(data, made, `pattern ${atom + 1}`, side);
}

function cellsText(data, atom, cells) {
  const total = data.atoms.coded[atom] * cells.length;
  const [right, missed, invented, unknown] = ["right", "missed", "invented", "unknown"].map((key) => sumOf(cells, key));
  const text =
    `The rows that use it have ${pluralize(total, "cell")} of its features: ${formatCount(right)} right ` +
    `(${percentText(right, total - unknown)}), ${formatCount(missed)} missed, ${formatCount(invented)} invented`;
  return `${text}${unknown ? `, ${formatCount(unknown)} unknown` : ""}.`;
}

function featureTable(explorer, cells) {
  const { data } = explorer;
  const keys = ["right", "missed", "invented", "unknown"].filter((key) => key === "right" || sumOf(cells, key));
  const heads = ["feature", "lift", ...keys, keys.includes("unknown") ? "right, of known" : "right, of all"];
  const sorted = [...cells].sort((a, b) => b.missed + b.invented - a.missed - a.invented || a.feature - b.feature);
  const line = (cell) => () => [
    selectButton(explorer, "feature", cell.feature, memberName(data, cell.feature)),
    cells.length > 1 ? liftText(cell.lift) : "–",
    ...keys.map((key) => formatCount(cell[key])),
    percentText(cell.right, cell.right + cell.missed + cell.invented),
  ];
  return dataTable("Cells by feature", heads, sorted.map(line));
}

function relatedParts(explorer, atom) {
  const related = relatedPatterns(explorer.data, atom);
  if (!related.length) return [];
  const item = (pair) => element("li", null,
    selectButton(explorer, "pattern", pair.other, `Pattern ${pair.other + 1}`), `: ${togetherText(pair)}`);
  return [element("h4", null, "Related patterns"), pagedList("plain", related, item, 5)];
}

// The rows of the page that use a pattern: their cells of its features as a picture, and a list.
function userParts(explorer, atom, users) {
  const { data } = explorer;
  const nAll = data.atoms.coded[atom];
  const contained = ` The page contains ${formatCount(users.length)} of ${formatCount(nAll)} rows that use it.`;
  const note = users.length < nAll ? contained : "";
  const rated = ratedUsers(data, atom, users);
  const item = ({ row, nRight, nWrong }) => element("li", null,
    data.picture ? pictureCanvas(data, rowStates(data, row), "", SMALL_SIDE) : "",
    selectButton(explorer, "row", row, data.rowName(row)),
    `: ${formatCount(nRight)} right, ${formatCount(nWrong)} wrong`);
  const list = pagedList(data.picture ? "plain drawn" : "plain", rated, item);
  return [
    element("h4", null, "Rows behind it"),
    element("p", null, `Those with the fewest wrong cells of the pattern come first.${note}`),
    users.length && data.picture ? legend(data) : "",
    users.length ? list : element("p", { class: "note" }, "No row of this page uses it."),
  ];
}

function ratedUsers(data, atom, users) {
  const rated = users.map((row) => ({ row, ...cellsInRow(data, atom, rowStates(data, row)) }));
  return rated.sort((a, b) => a.nWrong - b.nWrong || a.row - b.row);
}

function patternCellLines(data, atom) {
  const features = data.atomFeatures[atom];
  if (!data.nRows) {
    const keys = ["right", "missed", "invented", "unknown"];
    const line = (cell) => [memberName(data, cell.feature), ...keys.map((key) => cell[key])];
    return [["feature", ...keys], ...patternCells(data, atom).map(line)];
  }
  return [["row", ...features.map(data.featureName)], ...data.usersOfAtom[atom].map((row) => {
    const states = rowStates(data, row);
    return [data.rowName(row), ...features.map((feature) => STATE_WORDS[states[feature]])];
  })];
}

function spanText(data, atom) {
  const { places, where } = data.genome;
  const features = [...data.atomFeatures[atom]].sort((a, b) => places[a] - places[b]);
  return features.length ? `Variants from ${where[features[0]]} to ${where[features.at(-1)]}.` : "";
}

// --- rows

function rowDetail(explorer, row) {
  const { data } = explorer;
  const shown = tableRow(data, row);
  const group = data.groups ? [["group", nameElement(data.groupNames[data.groups[row]])]] : [];
  return {
    title: shown.name,
    children: [
      ...rowParts(explorer, shown, [["row of the table", formatCount(data.rowIndices[row])], ...group]),
      element("p", { class: "actions" },
        button("Code it in this page", () => explorer.codeCells(rowCells(data, row), shown.name))),
    ],
  };
}

// What a row consists of, in the table or typed: its patterns, and what is left over.
function rowParts(explorer, shown, facts) {
  const { data } = explorer;
  const [missed, invented, unknown] = [MISSED, INVENTED, HIDDEN].map((state) => withState(shown.states, state));
  const all = [
    ["patterns", formatCount(shown.atoms.length)],
    ["bits", shown.bits.toFixed(1)],
    ["wrong cells", formatCount(missed.length + invented.length)],
    ...(unknown.length ? [["unknown cells", formatCount(unknown.length)]] : []),
    ...facts,
  ];
  return [
    factList(all),
    data.picture ? rowPictures(data, shown) : "",
    element("h4", null, "Patterns that make it up"),
    atomItems(explorer, shown),
    element("h4", null, "Left over"),
    data.picture ? legend(data) : leftOver(explorer, missed, invented, unknown),
    ...(data.picture ? [] : [element("h4", null, "Right"), chipList(explorer, withState(shown.states, ONE), "")]),
  ];
}

function rowPictures(data, { states, atoms }) {
  const made = reconstruct(data, atoms);
  const before = states.map((state) => (state === HIDDEN ? HIDDEN : state === ONE || state === MISSED ? ONE : ZERO));
  const figure = (cells, caption) => element("figure", null,
    pictureCanvas(data, cells, caption, PICTURE_SIDE), element("figcaption", null, caption));
  return element("div", { class: "triple" },
    figure(before, "row"), figure(made, "its patterns"), figure(states, "wrong"));
}

function atomItems(explorer, { atoms, states }) {
  const { data } = explorer;
  if (!atoms.length) return element("p", null, "It uses no pattern.");
  const item = (atom) => {
    const { nRight, nWrong } = cellsInRow(data, atom, states);
    const names = data.atomFeatures[atom].map((feature) => memberName(data, feature));
    return element("li", null,
      data.picture ? atomPicture(data, atom, SMALL_SIDE) : "",
      selectButton(explorer, "pattern", atom, `Pattern ${atom + 1}`),
      `: ${formatCount(nRight)} cells right, ${formatCount(nWrong)} wrong`,
      data.picture ? "" : element("span", { class: "note" }, nameElement(joinNames(names, 8))));
  };
  return pagedList(data.picture ? "plain drawn" : "plain", atoms, item);
}

function leftOver(explorer, missed, invented, unknown) {
  if (!missed.length && !invented.length && !unknown.length) {
    return element("p", null, "Nothing: every known cell is right.");
  }
  const part = (features, kind, text) =>
    features.length ? [element("p", null, text), chipList(explorer, features, kind)] : [];
  return element("div", null,
    part(missed, "missed", `${pluralize(missed.length, "one")} that its patterns do not have:`),
    part(invented, "invented", `${pluralize(invented.length, "zero")} that its patterns make ones:`),
    part(unknown, "unknown", `${pluralize(unknown.length, "unknown cell")}, which cost nothing:`));
}

function chipList(explorer, features, kind) {
  const { data } = explorer;
  if (!features.length) return element("p", { class: "note" }, "none");
  const item = (feature) => element("li", { class: kind || null },
    selectButton(explorer, "feature", feature, data.featureName(feature)));
  return pagedList("chips", features, item, MAX_CHIPS);
}

// --- features

function pixelText(data, feature) {
  const [column, width] = [data.features.indices[feature], data.picture[1]];
  return `row ${Math.floor(column / width) + 1}, column ${(column % width) + 1}`;
}

const BIAS_TEXT = "It is a one in every row unless a pattern changes that (the bias).";

function featureDetail(explorer, feature) {
  const { data } = explorer;
  const atoms = data.atomsOfFeature[feature];
  const column = ["column of the table", formatCount(data.features.indices[feature])];
  const where = data.genome ? [["position", data.genome.where[feature]]] : [];
  if (data.picture) where.push(["pixel", pixelText(data, feature)]);
  const item = (atom) => {
    const cell = patternCells(data, atom).find((each) => each.feature === feature);
    const others = data.atomFeatures[atom].filter((other) => other !== feature).map((other) => memberName(data, other));
    return element("li", null,
      data.picture ? atomPicture(data, atom, SMALL_SIDE) : "",
      selectButton(explorer, "pattern", atom, `Pattern ${atom + 1}`),
      `: ${pluralize(data.atoms.coded[atom], "row")}, in ${formatCount(cell.missed + cell.invented)} of them wrong`,
      data.picture || !others.length
        ? "" : element("span", { class: "note" }, nameElement(`with ${joinNames(others, 8)}`)));
  };
  return {
    title: data.featureName(feature),
    children: [
      factList([...featureFacts(data, feature), column, ...where]),
      data.features.bias[feature] ? element("p", null, BIAS_TEXT) : "",
      element("h4", null, "Its patterns"),
      atoms.length ? pagedList(data.picture ? "plain drawn" : "plain", atoms, item)
        : element("p", null, "No pattern has it."),
      data.nRows && data.featureNamed.get(nameKey(data.featureName(feature))) === feature
        ? button("List its rows", () => explorer.search("rows", data.featureName(feature))) : "",
    ],
  };
}
