"""Viewports and scripts for the tests in a browser."""

PHONE, DESKTOP = {"width": 360, "height": 740}, {"width": 1280, "height": 900}

IS_WIDER_THAN_WINDOW = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
HEADING_LEVELS = "[...document.querySelectorAll('h1, h2, h3')].map(each => Number(each.tagName[1]))"

# Controls and pictures without a name, which is a label, text, or an alternative text.
NAMELESS = """[...document.querySelectorAll(
    "input, select, textarea, button, a, summary, img, [role=img], canvas:not([aria-hidden])")]
  .filter(each => !(each.labels?.length || each.textContent.trim() || each.ariaLabel || each.hasAttribute("alt")))
  .map(each => each.outerHTML.slice(0, 80))"""

# Contrast of visible text with its background, by tag and class, with the formula of WCAG 2.
CONTRAST = """() => {
  const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const luminance = (colour) => {
    const [r, g, b] = channels(colour).slice(0, 3).map(x => x / 255);
    const linear = (x) => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
    return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  };
  const background = (each) => {
    for (let node = each; node; node = node.parentElement) {
      const colour = getComputedStyle(node).backgroundColor;
      if ((channels(colour)[3] ?? 1) > 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const ratios = {};
  for (const each of document.querySelectorAll("body *")) {
    const hasText = [...each.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    if (!hasText || !each.checkVisibility() || ["SCRIPT", "STYLE"].includes(each.tagName)) continue;
    const pair = [luminance(getComputedStyle(each).color), luminance(background(each))].sort((a, b) => b - a);
    const ratio = (pair[0] + 0.05) / (pair[1] + 0.05);
    const kind = each.tagName + "." + each.className;
    ratios[kind] = Math.min(ratios[kind] ?? 21, ratio);
  }
  return ratios;
}"""
