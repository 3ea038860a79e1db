// Congestion episodes: a timeline with a row for each queue, and a table.
import { el } from "../../common/dom.js";
import * as format from "../../common/format.js";
import { table as described } from "../columns.js";
import { counts, moment, scope, Table } from "../../common/table.js";

const rowHeight = 22, most = 16, shown = 100;
const begin = (e) => Date.parse(e.start), end = (e, now) => (e.end ? Date.parse(e.end) : now);
const total = (by) => Object.values(by ?? {}).reduce((a, b) => a + b, 0);
const slowdowns = (e) => `${e.senders.filter((f) => f.slowed).length} of ${e.senders.filter((f) => f.slowed != null && !f.at_fair_rate).length}`;

// reactions is a table of an episode's flows: rates before and after the first notification.
export const reactions = (title) => described("reactions", title, "No flow of it was sampled.");

export const make = ({ state, now }) => {
  let chosen = null;
  const range = el("select", { onchange: () => update() }, ...[["", "all"], [300e3, "last 5 min"], [3600e3, "last hour"], [86400e3, "last day"]].map(([v, t]) => el("option", { value: v }, t)));
  const svg = el("svg:svg", { class: "timeline", "aria-hidden": "true" }), axis = el("p", { class: "muted axis" });
  const table = new Table("Congestion episodes", [
    { title: "Number", cell: (e) => el("button", { type: "button", class: "link", "aria-pressed": String(e.id === chosen), onclick: () => choose(e.id) }, String(e.id)) },
    { title: "Queue", left: true, cell: (e) => e.port + "/" + e.class },
    { title: "Start", left: true, cell: (e) => moment(e.start) },
    { title: "Lasted", cell: (e) => (e.end ? format.time((Date.parse(e.end) - Date.parse(e.start)) * 1e6) : "goes on") },
    { title: "Peak", cell: (e) => format.bytes(e.peak_bytes) },
    { title: "Marked packets", cell: (e) => format.count(e.ecn_marked) },
    { title: "Notifications", left: true, cell: (e) => counts(e.notifications) },
    { title: "Suppressed", cell: (e) => format.count(total(e.suppressed)) },
    { title: "Senders", cell: (e) => e.senders.length + (e.more_senders ?? 0) },
    { title: "Slowed", cell: slowdowns },
  ], { mark: (e) => e.id === chosen, empty: "No congestion since the gateway started." });
  const name = el("h2", {}, "Episode"), facts = el("p"), flows = reactions("Flows of the episode");
  const detail = el("section", { class: "panel", hidden: true }, name, facts, flows.node);
  const node = el("div", { class: "stack" }, el("section", { class: "panel" }, el("div", { class: "bar" }, el("h2", {}, "Congestion episodes"), el("label", {}, "Timeline", range)),
    el("p", { class: "muted" }, "A queue is congested while senders are notified about it or packets marked. A darker bar had a higher peak."), svg, axis, table.node), detail);

  let drawn = [];
  new ResizeObserver(() => draw(drawn)).observe(svg);

  const choose = (id) => {
    chosen = id;
    update();
  };

  const draw = (every) => {
    drawn = every;
    const since = range.value ? now() - range.value : -Infinity, all = every.filter((e) => end(e, now()) >= since);
    const queues = [...new Set(all.map((e) => e.port + "/" + e.class))].sort().slice(0, most);
    const to = now(), from = range.value ? since : all.length ? Math.min(...all.map(begin)) : to, width = svg.clientWidth || 600, left = Math.min(140, width / 3), span = Math.max(to - from, 1);
    const x = (t) => left + ((width - left - 4) * (Math.max(t, from) - from)) / span, peak = Math.max(1, ...all.map((e) => e.peak_bytes));
    svg.setAttribute("viewBox", `0 0 ${width} ${Math.max(queues.length, 1) * rowHeight}`);
    svg.style.height = Math.max(queues.length, 1) * rowHeight + "px";
    svg.replaceChildren(...queues.flatMap((q, i) => [
      el("svg:text", { x: 0, y: i * rowHeight + 15, class: "label" }, q.length > 18 ? q.slice(0, 17) + "…" : q),
      el("svg:line", { x1: left, x2: width, y1: (i + 1) * rowHeight - 1, y2: (i + 1) * rowHeight - 1, class: "rule" }),
      ...all.filter((e) => e.port + "/" + e.class === q).map((e) => el("svg:rect", { x: x(begin(e)), width: Math.max(2, x(end(e, to)) - x(begin(e))), y: i * rowHeight + 3, height: rowHeight - 7,
        class: e.id === chosen ? "bar chosen" : "bar", "fill-opacity": (0.35 + (0.65 * e.peak_bytes) / peak).toFixed(2), onclick: () => choose(e.id) })),
    ]));
    axis.textContent = all.length ? `${moment(from)} to ${moment(to)}` : "";
  };

  const update = () => {
    const all = [...state.episodes.values()].sort((a, b) => a.id - b.id);
    draw(all);
    table.show(all.slice(-shown).reverse());
    const e = state.episodes.get(chosen);
    detail.hidden = !e;
    if (!e) return;
    name.textContent = `Episode ${e.id} of queue ${e.port}/${e.class}`;
    facts.textContent = `Notifications: ${counts(e.notifications)}. Suppressed: ${counts(e.suppressed)}. Senders that slowed down, of those of which it is known: ${slowdowns(e)}.`;
    const key = (f) => [f.source_ip, f.destination_ip, f.destination_qp, scope(f)].join();
    const has = new Set(e.flows.map(key));
    flows.show([...e.flows, ...e.senders.filter((f) => !has.has(key(f)))]);
  };
  return { node, update, show: update, kinds: ["episodes", "counters"] };
};
