// The explorer: its views as tabs, what is selected, and addresses that lead to it (#explore=pattern-3).

function startExplorer(data) {
  const explorer = { data, selected: null, origin: null, made: {} };
  Object.assign(explorer, {
    select: (kind, index) => select(explorer, kind, index, true),
    back: () => goBack(explorer),
    search: (view, query) => {
      showView(explorer, view);
      explorer.made[view](query);
      at(`tab-${view}`).focus();
    },
    codeCells: (cells, name) => {
      showView(explorer, "code");
      explorer.made.code(cells, name);
    },
    showTyped: (parsed, name, moveFocus = false) => {
      explorer.selected = { kind: "typed" };
      const { title, children } = typedDetail(explorer, parsed, name);
      showDetail(explorer, title, children, moveFocus);
      markSelected(explorer);
    },
  });
  at("explorer").hidden = false;
  startTabs(explorer);
  showView(explorer, "patterns");
  addEventListener("hashchange", () => (location.hash ? followAddress(explorer) : selectFirst(explorer)));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
  at("detail").addEventListener("keydown", (event) => event.key === "Escape" && explorer.origin && goBack(explorer));
  followAddress(explorer);
  prepareWhenIdle(explorer);
  return explorer;
}

// Decode the data and select the first pattern while nothing else happens: a large page opens at once.
function prepareWhenIdle(explorer) {
  const parts = ["bits", "codes", "usersOfAtom", "cells", "atomsOfFeature", "featureNamed", "togetherCounts"];
  const steps = parts.map((name) => () => explorer.data[name]);
  steps.push(() => explorer.selected ?? selectFirst(explorer));
  const next = () => {
    steps.shift()();
    if (steps.length) setTimeout(next);
  };
  setTimeout(next);
}

const MAKERS = {
  patterns: (explorer, panel) => makeList(explorer, panel, "patterns"),
  rows: (explorer, panel) => makeList(explorer, panel, "rows"),
  features: (explorer, panel) => makeList(explorer, panel, "features"),
  code: makeCoding,
  matrix: makeMatrix,
};

function startTabs(explorer) {
  const list = document.querySelector("#explorer [role=tablist]");
  for (const tab of list.children) {
    tab.addEventListener("click", () => showView(explorer, tab.dataset.view));
    tab.addEventListener("focus", () => showView(explorer, tab.dataset.view));
  }
  moveByArrows(list, "[role=tab]", ["ArrowLeft", "ArrowRight"]);
}

// Show a view; it is built when it is first shown.
function showView(explorer, view) {
  if (explorer.view === view) return;
  explorer.view = view;
  for (const tab of document.querySelectorAll("#explorer [role=tab]")) {
    const isShown = tab.dataset.view === view;
    tab.setAttribute("aria-selected", String(isShown));
    tab.tabIndex = isShown ? 0 : -1;
    at(`view-${tab.dataset.view}`).hidden = !isShown;
  }
  if (!(view in explorer.made)) explorer.made[view] = MAKERS[view](explorer, at(`view-${view}`));
  else if (view === "matrix") redrawAll();
  markSelected(explorer);
}

// Select a pattern, a row or a feature, and show it.
function select(explorer, kind, index, isNew) {
  const { data } = explorer;
  const marksChange = explorer.view === "matrix" && (kind === "pattern" || explorer.selected?.kind === "pattern");
  explorer.selected = { kind, index };
  const origin = document.activeElement;
  if (isNew && origin !== document.body && !at("detail").contains(origin)) explorer.origin = origin;
  const { title, children } = DETAILS[kind](explorer, index);
  showDetail(explorer, title, children, isNew);
  markSelected(explorer);
  if (marksChange) document.querySelector("#view-matrix canvas").redraw();
  if (isNew) history.pushState(null, "", `#explore=${kind}-${tableIndex(data, kind, index)}`);
}

// Addresses have numbers of the table: patterns from 1, rows and features from 0.
function tableIndex(data, kind, index) {
  if (kind === "pattern") return index + 1;
  return (kind === "row" ? data.rowIndices : data.features.indices)[index];
}

function pageIndex(data, kind, number) {
  if (kind === "pattern") return number >= 1 && number <= data.nAtoms ? number - 1 : undefined;
  return (kind === "row" ? data.rowOfIndex : data.featureOfColumn).get(number);
}

function followAddress(explorer) {
  const [, kind, number] = /^#(?:explore=(pattern|row|feature)|atom)-(\d+)$/.exec(location.hash) ?? [];
  const index = number && pageIndex(explorer.data, kind ?? "pattern", Number(number));
  if (index === undefined) return;
  select(explorer, kind ?? "pattern", index, false);
  at("explore").scrollIntoView();
}

// Select the first pattern, as before the first click.
function selectFirst(explorer) {
  if (explorer.data.nAtoms) select(explorer, "pattern", 0, false);
  else at("detail").replaceChildren(element("p", { class: "note" }, "Nothing is selected yet."));
}

// Return to the entry, or other control, that led to the selection.
function goBack(explorer) {
  const entry = document.querySelector(`#view-${explorer.view} [aria-current]`);
  const target = explorer.origin?.isConnected && explorer.origin.checkVisibility() ? explorer.origin : entry;
  (target ?? at(`tab-${explorer.view}`)).focus();
}

// Turn the names of rows in other sections into buttons that select them.
function linkRows(explorer) {
  for (const row of document.querySelectorAll("[data-row]")) {
    const holder = row.querySelector("h3") ?? row;
    const index = pageIndex(explorer.data, "row", Number(row.dataset.row));
    const open = () => {
      explorer.select("row", index);
      at("detail").scrollIntoView({ block: "center" });
    };
    if (index !== undefined) holder.replaceChildren(button([...holder.childNodes], open, { class: "link" }));
  }
}
