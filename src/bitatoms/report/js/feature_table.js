// The table of wrong cells by feature: searched, and sorted by the buttons in its header.

function startFeatureTable() {
  const table = at("feature-table");
  if (!table) return;
  const lines = [...table.tBodies[0].rows];
  const search = at("search-feature");
  const buttons = [...table.querySelectorAll("thead button")];
  const cell = (line, column) => line.cells[column].textContent;

  const filter = () => {
    const query = search.value.trim().toLowerCase();
    let shown = 0;
    for (const line of lines) {
      line.hidden = !cell(line, 0).toLowerCase().includes(query);
      shown += !line.hidden;
    }
    at("shown-features").textContent = countText(shown, lines.length, "feature");
  };
  buttons.forEach((each, column) => {
    const head = each.closest("th");
    each.addEventListener("click", () => {
      const direction = nextDirection(head, column);
      for (const other of buttons) other.closest("th").removeAttribute("aria-sort");
      head.setAttribute("aria-sort", direction);
      table.tBodies[0].append(...sortedLines(lines, column, direction));
    });
  });
  search.addEventListener("input", filter);
  at("find-feature").hidden = false;
  filter();
}

// Numbers are first sorted from the largest, names from A to Z; then the other way round.
function nextDirection(head, column) {
  const [first, other] = column ? ["descending", "ascending"] : ["ascending", "descending"];
  return head.getAttribute("aria-sort") === first ? other : first;
}

function sortedLines(lines, column, direction) {
  const collator = new Intl.Collator("en", { numeric: true });
  const text = (line) => line.cells[column].textContent;
  const value = (line) => Number(text(line).replaceAll(",", ""));
  const difference = column ? (a, b) => value(a) - value(b) : (a, b) => collator.compare(text(a), text(b));
  const sign = direction === "ascending" ? 1 : -1;
  return [...lines].sort((a, b) => sign * difference(a, b) || lines.indexOf(a) - lines.indexOf(b));
}
