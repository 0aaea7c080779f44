// Start the page: the explorer takes the place of the table of patterns, which is read without scripts and on paper.

if (at("data")) {
  linkRows(startExplorer(openData(JSON.parse(at("data").textContent))));
  if (at("listing")) at("listing").hidden = true;
}
