// The cards of patterns: search by feature, by row and by number; sort by the data attributes of the cards.

function startCards(data) {
  const list = at("cards");
  if (!list) return;
  const cards = [...list.children];
  const search = at("search");
  const order = at("order");
  const rows = cards.map((card) => [...card.querySelectorAll(".row")].map((row) => row.textContent.toLowerCase()));

  const filter = () => {
    const query = search.value.trim().toLowerCase();
    const number = patternNumber(query) ?? query.replace(/^#/, "");
    const hits = query ? cardHits(data, cards, query) : null;
    let shown = 0;
    cards.forEach((card, i) => {
      const found = hits?.(i) ?? [];
      const isCalled = card.dataset.atom === number || rows[i].some((row) => row.includes(query));
      const matches = !query || found.length > 0 || isCalled;
      card.hidden = !matches;
      shown += matches;
      const hitsText = card.querySelector(".hits");
      hitsText.hidden = !found.length;
      hitsText.textContent = found.length ? `has ${joinNames(found, 4)}` : "";
    });
    at("shown").textContent = countText(shown, cards.length, "pattern");
    at("nothing").hidden = shown > 0;
  };
  const sort = () => {
    const by = order.value;
    const sign = by === "atom" ? 1 : -1;
    const compare = (a, b) => sign * (a.dataset[by] - b.dataset[by]) || a.dataset.atom - b.dataset.atom;
    list.append(...[...cards].sort(compare));
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
  focusBySlash(search);
  at("find").hidden = false;
  sort();
  filter();
}

// For each card, the names of its features that match; without data, only those that are on the card.
function cardHits(data, cards, query) {
  if (!data) {
    const names = (card) => [...card.querySelectorAll(".chips bdi")].map((chip) => chip.textContent);
    return (i) => names(cards[i]).filter((name) => name.toLowerCase().includes(query));
  }
  const found = featuresLike(data, query);
  const featuresOf = (card) => data.atomFeatures[card.dataset.atom - 1];
  return (i) => featuresOf(cards[i]).filter((feature) => found.has(feature)).map(data.featureName);
}

function focusBySlash(search) {
  addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, select, textarea");
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    search.focus();
    search.select();
  });
}
