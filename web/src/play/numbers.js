// The results of both responses, from the JSON that cnpgate sim prints.
import { el } from "../common/dom.js";
import * as format from "../common/format.js";

// slowDown is the first slow-down, from the first flow's start (docs/simulator.md): null before it.
const slowDown = (r) => (r.slow_down_ns < 0 ? null : r.slow_down_ns);

const rows = [
  ["Link use, of the ideal", (r) => format.percent(Math.min(1, r.goodput / r.possible_goodput_bps)), (r) => -r.goodput],
  ["Lost packets", (r) => format.count(r.lost), (r) => r.lost],
  ["99th percentile of the WAN queue", (r) => format.bytes(r.gateway_queue.p99_bytes), (r) => r.gateway_queue.p99_bytes],
  ["Longest WAN queue", (r) => format.bytes(r.gateway_queue.peak_bytes), (r) => r.gateway_queue.peak_bytes],
  ["Mean completion time of a flow", (r) => (r.all.finished ? `${format.time(r.all.fct_mean_ns)} (${r.all.finished} of ${r.all.flows} have ended)` : `none of ${r.all.flows} has ended`),
    (r) => (r.all.finished === r.all.flows ? r.all.fct_mean_ns : null)],
  ["First slow-down", (r) => (r.slowDown == null ? "not yet" : format.time(r.slowDown)), (r) => r.slowDown],
  ["Fairness (Jain's index)", (r) => r.jain.toFixed(3), (r) => (r.all.finished === r.all.flows ? -r.jain : null)],
  ["Notifications of gateways", (r) => format.count(r.notifications)],
  ["CNPs of receivers", (r) => format.count(r.cnps)],
];

const complete = (r) => ({ ...r, goodput: r.all.goodput_bps, lost: r.dropped_packets + r.lost_packets, slowDown: slowDown(r) });

// show fills the table; titles are those of the panes.
export const show = (table, results, titles) => {
  const both = results.map(complete);
  table.tHead.replaceChildren(el("tr", {}, el("th", { scope: "col" }, "Figure"), ...titles.map((t) => el("th", { scope: "col" }, t))));
  table.tBodies[0].replaceChildren(...rows.map(([name, text, better]) => {
    const values = better ? both.map(better) : [];
    return el("tr", {}, el("th", { scope: "row" }, name), ...both.map((r, i) => {
      const best = better && values[i] != null && values[1 - i] != null && values[i] < values[1 - i] * (values[1 - i] < 0 ? 1.02 : 0.98);
      return el("td", {}, best ? el("strong", { class: "good" }, text(r)) : text(r));
    }));
  }));
};

// verdict says in a sentence what the results show.
export const verdict = (results, ended) => {
  const [l, r] = results.map(complete), parts = [];
  const times = (d) => (d == null ? "(not yet)" : format.time(d));
  if (l.crossed_ns < 0 && r.crossed_ns < 0) parts.push(ended ? "The WAN queue never crossed its threshold." : "The WAN queue has not crossed its threshold yet.");
  else {
    let text = `First slow-down: left after ${times(l.slowDown)}, right after ${times(r.slowDown)}`;
    if (l.slowDown > 2 * r.slowDown && r.slowDown > 0) text += `, ${format.count(l.slowDown / r.slowDown)} times sooner`;
    parts.push(text + ".");
  }
  parts.push(`Packets lost: ${format.count(l.lost)} and ${format.count(r.lost)}.`);
  if (ended && l.all.finished === l.all.flows && r.all.finished === r.all.flows) {
    parts.push(`A flow takes ${format.time(l.all.fct_mean_ns)} and ${format.time(r.all.fct_mean_ns)}.`);
  }
  return parts.join(" ");
};
