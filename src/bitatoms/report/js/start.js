// Start the page. It is complete without scripts, apart from the explorer.

function startPage() {
  const source = at("data");
  const data = source && openData(JSON.parse(source.textContent));
  startCards(data);
  startFeatureTable();
  if (data) linkSections(startExplorer(data));
  for (const input of document.querySelectorAll("#find input, #find-feature input")) {
    clearByEscape(input);
    input.form.addEventListener("submit", (event) => event.preventDefault()); // Enter must not reload the page
  }
  unfoldForPrint();
}

// Print all details unfolded.
function unfoldForPrint() {
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const each of folded) each.open = true;
  });
  addEventListener("afterprint", () => {
    for (const each of folded) each.open = false;
  });
}

startPage();
