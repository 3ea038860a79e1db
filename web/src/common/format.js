// Quantities as text, in the notation of cnpgate's tables: decimal prefixes, three or four digits.

const scaled = (value, units, base) => {
  let i = 0;
  while (i + 1 < units.length && Math.abs(value) >= 1000 * base) {
    value /= 1000;
    i++;
  }
  const digits = Math.abs(value) >= 100 || Number.isInteger(value) ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toFixed(digits) + units[i];
};

export const bytes = (n) => (n == null ? "–" : scaled(n, ["B", "KB", "MB", "GB", "TB"], 1));
export const rate = (n) => (n == null ? "–" : scaled(n, ["bps", "kbps", "Mbps", "Gbps", "Tbps"], 1));
export const count = (n) => (n == null ? "–" : Math.round(n).toLocaleString("en"));
export const percent = (n) => (n == null ? "–" : (100 * n).toFixed(n < 0.1 ? 1 : 0) + "\u00a0%");

// time formats nanoseconds; negative ones mean that it never happened.
export const time = (ns) => {
  if (ns == null) return "–";
  if (ns < 0) return "never";
  if (ns < 1e9) return scaled(ns, ["\u00a0ns", "\u00a0µs", "\u00a0ms"], 1);
  if (ns < 120e9) return (ns / 1e9).toFixed(ns < 10e9 ? 2 : 1) + "\u00a0s";
  if (ns < 7200e9) return Math.round(ns / 60e9) + "\u00a0min";
  return (ns / 3600e9).toFixed(1) + "\u00a0h";
};
