"use strict";
// The page is complete without this script, which only searches and sorts.
(() => {
  const at = (id) => document.getElementById(id);
  const countText = (shown, all, noun) =>
    shown === all ? `${all.toLocaleString("en")} ${noun}` : `${shown.toLocaleString("en")} of ${all.toLocaleString("en")} ${noun}`;

  // Patterns: search by feature, by row and by number; sort by the data attributes of the cards.
  const list = at("cards");
  if (list) {
    const cards = [...list.children];
    const index = JSON.parse(at("index").textContent);
    const features = index.features.map((name) => name.toLowerCase());
    const bitmaps = index.atoms.map(atob); // one string of bytes per atom, the first feature in the lowest bit
    const rows = cards.map((card) => [...card.querySelectorAll(".row")].map((row) => row.textContent.toLowerCase()));
    const search = at("search");
    const order = at("order");

    const holds = (atom, feature) => (bitmaps[atom].charCodeAt(feature >> 3) >> (feature & 7)) & 1;
    const joinNames = (names) => names.slice(0, 4).join(", ") + (names.length > 4 ? ` and ${names.length - 4} more` : "");

    const filter = () => {
      const query = search.value.trim().toLowerCase();
      const number = /^(?:pattern|atom)?\s*#?(\d+)$/.exec(query)?.[1];
      const hits = [];
      if (query) features.forEach((name, feature) => name.includes(query) && hits.push(feature));
      let shown = 0;
      for (const card of cards) {
        const atom = card.dataset.atom - 1;
        const found = hits.filter((feature) => holds(atom, feature));
        const matches = !query || found.length > 0 || card.dataset.atom === number || rows[atom].some((row) => row.includes(query));
        card.hidden = !matches;
        shown += matches;
        const hitsText = card.querySelector(".hits");
        hitsText.hidden = !found.length;
        hitsText.textContent = found.length ? `has ${joinNames(found.map((feature) => index.features[feature]))}` : "";
      }
      at("shown").textContent = countText(shown, cards.length, cards.length === 1 ? "pattern" : "patterns");
      at("nothing").hidden = shown > 0;
    };

    const sort = () => {
      const by = order.value;
      const sign = by === "atom" ? 1 : -1;
      const sorted = [...cards].sort((a, b) => sign * (a.dataset[by] - b.dataset[by]) || a.dataset.atom - b.dataset.atom);
      list.append(...sorted);
    };

    // A link to a pattern that the search hides clears the search.
    const follow = () => {
      const card = location.hash && at(location.hash.slice(1));
      if (!card?.hidden) return;
      search.value = "";
      filter();
      card.scrollIntoView();
    };

    search.addEventListener("input", filter);
    order.addEventListener("change", sort);
    addEventListener("hashchange", follow);
    addEventListener("keydown", (event) => {
      const typing = event.target.closest?.("input, select, textarea");
      if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      search.focus();
      search.select();
    });
    at("find").hidden = false;
    sort();
    filter();
  }

  // Features: a table sorted by the buttons in its header.
  const table = at("feature-table");
  if (table) {
    const lines = [...table.tBodies[0].rows];
    const search = at("search-feature");
    const buttons = [...table.querySelectorAll("thead button")];
    const collator = new Intl.Collator("en", { numeric: true });
    const cell = (line, column) => line.cells[column].textContent;
    const value = (line, column) => Number(cell(line, column).replaceAll(",", ""));

    const filter = () => {
      const query = search.value.trim().toLowerCase();
      let shown = 0;
      for (const line of lines) {
        line.hidden = !cell(line, 0).toLowerCase().includes(query);
        shown += !line.hidden;
      }
      at("shown-features").textContent = countText(shown, lines.length, lines.length === 1 ? "feature" : "features");
    };

    buttons.forEach((button, column) => {
      const head = button.closest("th");
      button.addEventListener("click", () => {
        const first = column ? "descending" : "ascending"; // numbers from the largest, names from A to Z
        const other = column ? "ascending" : "descending";
        const direction = head.getAttribute("aria-sort") === first ? other : first;
        for (const each of buttons) each.closest("th").removeAttribute("aria-sort");
        head.setAttribute("aria-sort", direction);
        const sign = direction === "ascending" ? 1 : -1;
        const difference = column
          ? (a, b) => value(a, column) - value(b, column)
          : (a, b) => collator.compare(cell(a, 0), cell(b, 0));
        const sorted = [...lines].sort((a, b) => sign * difference(a, b) || lines.indexOf(a) - lines.indexOf(b));
        table.tBodies[0].append(...sorted);
      });
    });
    search.addEventListener("input", filter);
    at("find-feature").hidden = false;
    filter();
  }

  // Escape clears a search; Enter must not submit its form.
  for (const input of document.querySelectorAll("input[type=search]")) {
    input.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !input.value) return;
      event.preventDefault();
      input.value = "";
      input.dispatchEvent(new Event("input"));
    });
    input.form.addEventListener("submit", (event) => event.preventDefault());
  }

  // Print all details unfolded.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const each of folded) each.open = true;
  });
  addEventListener("afterprint", () => {
    for (const each of folded) each.open = false;
  });
})();
