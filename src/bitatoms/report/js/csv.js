// CSV files. Text that a spreadsheet would run as a formula gets an apostrophe in front.

function csvCell(value) {
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\n\r]/.test(text) || text !== text.trim() ? `"${text.replaceAll('"', '""')}"` : text;
}

function csvText(lines) {
  return lines.map((cells) => `${cells.map(csvCell).join(",")}\n`).join("");
}
