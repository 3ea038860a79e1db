// Ports and queues: a row for each port, and plots of the chosen one.
import { el } from "../../common/dom.js";
import * as format from "../../common/format.js";
import { Plot } from "../../common/plots.js";
import { clock, least, Table } from "../../common/table.js";
import { sum } from "../state.js";

const time = (s) => clock(s * 1000);

export const make = ({ state, live, clockOf = time }) => {
  let chosen = null, plots = null;
  const table = new Table("Ports", [
    { title: "Port", cell: (p) => el("button", { type: "button", class: "link", "aria-pressed": String(p.name === chosen), onclick: () => choose(p.name) }, p.name) },
    { title: "Role", left: true, cell: (p) => p.now.role },
    { title: "RX", cell: (p) => format.rate(p.rates.rx) },
    { title: "TX", cell: (p) => format.rate(p.rates.tx) },
    { title: "Load", cell: (p) => format.percent(p.rates.tx == null || !p.now.rate_bps ? null : p.rates.tx / p.now.rate_bps) },
    { title: "Queue", cell: (p) => format.bytes(p.now.queue_depth_bytes) },
    { title: "Peak", cell: (p) => format.bytes(p.now.queue_watermark_bytes) },
    { title: "Capacity", cell: (p) => format.bytes(p.now.queue_capacity_bytes) },
    { title: "Notified/s", cell: (p) => format.count(p.rates.notified == null ? null : p.rates.notified + p.rates.observed) },
    { title: "Marked/s", cell: (p) => format.count(p.rates.marked) },
    { title: "Dropped/s", cell: (p) => format.count(p.rates.dropped) },
    { title: "RTT", cell: (p) => (p.now.rtt_estimate_nanoseconds ? format.time(p.now.rtt_estimate_nanoseconds) : "–") },
    { title: "Problem", left: true, cell: (p) => state.health?.problems?.[p.name] ?? "–" },
  ], { mark: (p) => p.name === chosen, empty: "No port is known yet." });
  const name = el("h2", {}, "Port"), hosts = [0, 1, 2].map(() => el("div")), counters = el("tbody");
  const all = el("details", {}, el("summary", {}, "Counters that are not 0"),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Counters of the port" },
      el("table", {}, el("caption", { class: "hidden" }, "Counters of the port"), el("thead", {}, el("tr", {}, ...["Counter", "Since the start"].map((t) => el("th", { scope: "col" }, t)))), counters)));
  const detail = el("section", { class: "panel", hidden: true }, name, el("div", { class: "plots" }, ...hosts), all);
  const node = el("div", { class: "stack" }, el("section", { class: "panel" }, el("h2", {}, "Ports and queues"), table.node), detail);

  const choose = (next) => {
    chosen = next;
    const p = state.ports.get(next), law = p.now.q_ref_bytes != null;
    const limits = [{ label: law ? "q_ref" : "K_min", dash: [4, 4], width: 1 }, { label: law ? "notifies above" : "K_max", dash: [8, 4], width: 1 }];
    const series = [...p.now.queues.map((q) => ({ label: "class " + q.class })), ...limits];
    if (plots) plots[0].setSeries(series);
    else {
      plots = [
        new Plot(hosts[0], { title: "Bytes in the queue", series, value: format.bytes, time: clockOf, sync: "port" }),
        new Plot(hosts[1], { title: "Rate", series: [{ label: "arriving (RX)" }, { label: "leaving (TX)" }], value: format.rate, time: clockOf, sync: "port" }),
        new Plot(hosts[2], { title: "Events per second", value: format.count, time: clockOf, sync: "port",
          series: [{ label: "notifications" }, { label: "suppressed" }, { label: "marked packets" }, { label: "dropped packets" }] }),
      ];
    }
    update();
  };

  // preferred is the WAN port that is fullest.
  const preferred = (ports) => (ports.filter((p) => p.now.role === "wan").sort((a, b) => b.now.queue_watermark_bytes - a.now.queue_watermark_bytes)[0] ?? ports[0])?.name;

  const update = () => {
    const ports = [...state.ports.values()];
    if (!state.ports.has(chosen)) {
      chosen = null;
      if (ports.length) return choose(preferred(ports));
    }
    table.show(ports);
    const p = state.ports.get(chosen);
    detail.hidden = !p;
    if (!p) return;
    name.textContent = `Port ${p.name}, ${p.now.role}, ${format.rate(p.now.rate_bps)}, to ${p.now.peer}`;
    const range = live ? least(p.queues.columns[0]) : undefined;
    [p.queues, p.flow, p.events].forEach((s, i) => plots[i].update(s.columns, range));
    if (all.open) counters.replaceChildren(...rowsOf({ ...p.now.counters, ...p.now.device }));
  };
  all.ontoggle = update;
  return { node, update, kinds: ["counters", "health"] };
};

// rowsOf are the counters of a port that aren't 0, by label.
const rowsOf = (values) => Object.entries(values).filter(([, v]) => sum(v)).sort().flatMap(([name, v]) =>
  (typeof v === "object" ? Object.entries(v).filter(([, n]) => n).map(([label, n]) => [`${name}{${label}}`, n]) : [[name, v]])
    .map(([text, n]) => el("tr", {}, el("th", { scope: "row" }, text), el("td", {}, n.toLocaleString("en")))));
