// Colours are custom properties of style.css, for light and dark. Canvases read them here. Names: "text", "muted", "grid", "line", "panel", "accent", and
// "s0" to "s7", which a colour-blind reader can tell apart; a line has a dash pattern of its own as well.
let cache = new Map();
const listeners = new Set();

export const colour = (name) => {
  if (!cache.has(name)) cache.set(name, getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim());
  return cache.get(name);
};

const seriesColours = 8;
const dashes = [[], [7, 3], [2, 3], [9, 3, 2, 3]];

// seriesStyle is the colour and dash pattern of line number n.
export const seriesStyle = (n) => ({ colour: "s" + (n % seriesColours), dash: dashes[Math.floor(n / seriesColours) % dashes.length] });

// onTheme calls f after each change between light and dark.
export const onTheme = (f) => listeners.add(f);

const changed = () => {
  cache = new Map();
  for (const f of listeners) f();
};
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);

// Themes of the button: as the system, light, dark. The choice is for this page only: there is no cookie and no storage.
export const setTheme = (name) => {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  changed();
};

export const reducedMotion = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

// themeButton makes an element a switch between the three.
export const themeButton = (button) => {
  const names = ["auto", "light", "dark"];
  let at = 0;
  const show = () => (button.textContent = "Theme: " + names[at]);
  button.addEventListener("click", () => {
    at = (at + 1) % names.length;
    setTheme(names[at]);
    show();
  });
  show();
};
