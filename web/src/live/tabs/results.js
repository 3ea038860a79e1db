// Results of a recording: finished plots, and the table of a simulation's outcomes.
import { el } from "../../common/dom.js";
import * as format from "../../common/format.js";
import { Plot } from "../../common/plots.js";
import { Table } from "../../common/table.js";

const formats = { bytes: format.bytes, bps: format.rate, count: format.count };

export const make = ({ state }) => {
  const plots = el("div", { class: "plots" }), facts = el("div");
  const node = el("section", { class: "panel" }, el("h2", {}, "Results"), plots, facts);
  let drawn = null;
  const update = () => {
    if (drawn === state.charts && !state.outcomes) return;
    drawn = state.charts;
    plots.replaceChildren();
    for (const c of state.charts) {
      const host = el("div");
      plots.append(host);
      new Plot(host, { title: c.title, series: c.lines.slice(0, 32).map((l) => ({ label: l.label })), value: formats[c.unit], sync: "results", height: 220 })
        .update([c.times_ns, ...c.lines.slice(0, 32).map((l) => l.values)]);
    }
    if (!state.outcomes) return;
    const t = new Table("Outcomes", [
      { title: "Response", cell: (o) => o.response + (o.sweep ? ", " + o.sweep : "") },
      ...figures(state.outcomes[0]).map((key) => ({ title: key.replaceAll("_", " "), cell: (o) => figure(key, at(o, key)) })),
    ]);
    t.show(state.outcomes);
    facts.replaceChildren(t.node);
  };
  return { node, update, kinds: ["outcomes", "charts"] };
};

const at = (o, key) => key.split(".").reduce((v, k) => v?.[k], o);

// figures are the names of an outcome's numbers.
const figures = (o, prefix = "") => Object.entries(o).flatMap(([k, v]) =>
  typeof v === "number" ? [prefix + k] : v && typeof v === "object" && !Array.isArray(v) ? figures(v, prefix + k + ".") : []);

const figure = (key, v) => (v == null ? "–" : key.endsWith("_ns") || key.endsWith("_nanoseconds") ? format.time(v) : key.endsWith("_bytes") ? format.bytes(v) : key.endsWith("_bps") ? format.rate(v)
  : Number.isInteger(v) ? format.count(v) : v.toPrecision(4));
