// Health: ports that don't forward, and what is in force besides the configuration file.
import { el } from "../../common/dom.js";
import { sum } from "../state.js";
import * as format from "../../common/format.js";
import { Table } from "../../common/table.js";

export const make = ({ state }) => {
  const verdict = el("p", { role: "status" }), notices = el("ul");
  const problems = new Table("Problems", [
    { title: "Port", cell: (p) => p.name },
    { title: "Forwards", left: true, cell: (p) => (p.problem ? el("span", { class: "bad" }, "no") : el("span", { class: "good" }, "yes")) },
    { title: "Problem", left: true, cell: (p) => el("span", { class: "why" }, p.problem ?? "–") },
    { title: "Missed by the device", cell: (p) => format.count(p.missed) },
  ], { empty: "No port is known yet." });
  const node = el("section", { class: "panel" }, el("h2", {}, "Health"), verdict, problems.node, notices);
  const update = () => {
    const h = state.health;
    verdict.textContent = !h ? "Not known." : h.healthy ? "All ports forward every frame." : "Not every port forwards.";
    verdict.className = !h ? "muted" : h.healthy ? "good" : "bad";
    notices.replaceChildren(...(h?.notices ?? []).map((n) => el("li", {}, n)));
    problems.show([...state.ports.values()].map((p) => ({ name: p.name, problem: h?.problems?.[p.name], missed: sum(p.now.device?.device_missed_packets_total) })));
  };
  return { node, update, kinds: ["health", "counters"] };
};
