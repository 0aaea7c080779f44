// Elements and texts. Names only ever become text nodes, never HTML.

const at = (id) => document.getElementById(id);

// Create an element: properties beginning with "on" are listeners, the others attributes.
function element(tag, properties, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

const nameElement = (name) => element("bdi", null, name);

function button(label, onclick, properties) {
  return element("button", { type: "button", onclick, ...properties }, label);
}

function labelled(label, control) {
  return element("label", null, label, " ", control);
}

function selectBox(options, onchange) {
  const items = options.map(([value, label]) => element("option", { value }, label));
  return element("select", { onchange }, items);
}

// Terms and values, as on the cards.
function factList(facts) {
  const item = ([label, value]) => element("div", null, element("dt", null, label), element("dd", null, value));
  return element("dl", { class: "facts" }, facts.map(item));
}

// Tell screen readers what happened.
function announce(text) {
  at("said").textContent = text;
}

// Append items in pages: as many at a time as this, and a button for more.
function appendPaged(list, indices, makeItem, size) {
  let n = 0;
  const more = button("", () => append(true), { class: "more" });
  function append(moveFocus) {
    const items = indices.slice(n, n + size).map(makeItem);
    n += items.length;
    list.append(...items);
    more.textContent = `Show ${formatCount(Math.min(size, indices.length - n))} more of ${formatCount(indices.length)}`;
    if (n >= indices.length) more.remove();
    else list.after(more);
    if (moveFocus) items[0].querySelector("button")?.focus();
  }
  append(false);
}

// Let the arrow keys move between buttons of which only one is reached by Tab.
function moveByArrows(container, selector, keys = ["ArrowUp", "ArrowDown"]) {
  container.addEventListener("keydown", (event) => {
    const buttons = [...container.querySelectorAll(selector)];
    const index = buttons.indexOf(document.activeElement);
    const target = { [keys[0]]: index - 1, [keys[1]]: index + 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (index < 0 || target === undefined || !buttons[target]) return;
    event.preventDefault();
    buttons[index].tabIndex = -1;
    buttons[target].tabIndex = 0;
    buttons[target].focus();
  });
}

// Offer a file to be saved.
function saveCsv(name, lines) {
  const href = URL.createObjectURL(new Blob([csvText(lines)], { type: "text/csv" }));
  const link = element("a", { download: name, href });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  announce(`${name} saved, ${pluralize(lines.length - 1, "line")}`);
}
