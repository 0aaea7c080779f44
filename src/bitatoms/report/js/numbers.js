// Numbers as text, as bitatoms/formatting.py writes them in the rest of the page.

const NUMBERS = new Intl.NumberFormat("en");
const formatCount = (n) => NUMBERS.format(n);
const pluralize = (n, noun) => `${formatCount(n)} ${noun}${n === 1 ? "" : "s"}`;
const countText = (shown, all, noun) =>
  shown === all ? pluralize(all, noun) : `${formatCount(shown)} of ${pluralize(all, noun)}`;

function percentText(part, total) {
  if (!total || !part) return "0%";
  if (part === total) return "100%";
  const value = (100 * part) / total;
  if (value < 0.01) return "less than 0.01%";
  if (value > 99.99) return "more than 99.99%";
  return `${roundedText(value, value < 0.995 || value > 99 ? 2 : 1)}%`;
}

// A count that need not be an integer: one decimal below 10.
function fewText(count) {
  if (!count || count >= 9.95) return formatCount(Number(roundedText(count, 0)));
  return count < 0.05 ? "<0.1" : roundedText(count, 1);
}

// How many times as often something occurs; a dash if that is unknown, or if it never occurs.
function liftText(lift) {
  if (!lift) return "–";
  if (lift >= 1e7) return `×${lift.toExponential(1)}`;
  const nDecimals = lift < 9.95 ? 1 - Math.floor(Math.log10(lift)) : 0;
  return `×${nDecimals ? Number(roundedText(lift, nDecimals)) : formatCount(Number(roundedText(lift, 0)))}`;
}

// A number with this many decimals. Halves are rounded to even, as in Python; `toFixed` rounds them up.
function roundedText(value, nDecimals) {
  const isHalf = (value * 2 ** (nDecimals + 1)) % 2 === 1;
  const scaled = value * 10 ** nDecimals;
  return (isHalf ? (2 * Math.round(scaled / 2)) / 10 ** nDecimals : value).toFixed(nDecimals);
}
