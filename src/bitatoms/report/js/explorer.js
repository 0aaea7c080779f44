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

// Decode the data, select the first pattern, and build what others would show, while nothing else happens: a large page
// opens at once, and the first click is fast.
function prepareWhenIdle(explorer) {
  const { data } = explorer;
  const parts = ["bits", "codes", "usersOfAtom", "cells", "atomsOfFeature", "featureNamed", "togetherCounts"];
  const steps = parts.map((name) => () => data[name]);
  steps.push(() => explorer.selected ?? selectFirst(explorer));
  for (let atom = 1; atom < Math.min(3, data.nAtoms); atom++) steps.push(() => patternDetail(explorer, atom));
  const whenIdle = window.requestIdleCallback ?? ((callback) => setTimeout(callback, 50));
  const next = () => {
    steps.shift()();
    if (steps.length) whenIdle(next);
  };
  whenIdle(next);
}

const MAKERS = {
  patterns: (explorer, panel) => makeList(explorer, panel, "patterns"),
  rows: (explorer, panel) => makeList(explorer, panel, "rows"),
  features: (explorer, panel) => makeList(explorer, panel, "features"),
  code: makeCoding,
  map: makeMap,
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
  const [, kind, number] = /^#explore=(pattern|row|feature)-(\d+)$/.exec(location.hash) ?? [];
  const index = kind && pageIndex(explorer.data, kind, Number(number));
  if (index === undefined) return;
  select(explorer, kind, index, false);
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

// Turn the names of patterns, rows and features in other sections into buttons.
function linkSections(explorer) {
  const link = (holder, kind, index) => {
    if (index === undefined || !holder) return;
    const open = () => {
      explorer.select(kind, index);
      at("detail").scrollIntoView({ block: "center" });
    };
    const made = button([...holder.childNodes], open, { class: "link" });
    holder.replaceChildren(made);
  };
  for (const card of document.querySelectorAll("#cards > .card")) {
    link(card.querySelector("h3"), "pattern", card.dataset.atom - 1);
  }
  for (const row of document.querySelectorAll("[data-row]")) {
    link(row.querySelector("h3, th"), "row", pageIndex(explorer.data, "row", Number(row.dataset.row)));
  }
  for (const line of document.querySelectorAll("[data-feature]")) {
    link(line.querySelector("th"), "feature", pageIndex(explorer.data, "feature", Number(line.dataset.feature)));
  }
}
