// Health, the first tab: is the gateway well? In a sentence, then what it is about: mode, traffic, congestion, ports, services, what is in force besides the file.
import { el, setText } from "../../common/dom.js";
import { sum } from "../state.js";
import * as format from "../../common/format.js";
import { counts, moment, Table } from "../../common/table.js";
import { dropped, wellness } from "../well.js";

const rate = (v) => (v == null ? "–" : format.count(v));

export const make = ({ state }) => {
  const verdict = el("p", { class: "well" }), facts = el("dl", { class: "about" }), notices = el("ul");
  const table = new Table("Ports", [
    { title: "Port", cell: (p) => p.name },
    { title: "Forwards", left: true, cell: (p) => (p.problem ? el("span", { class: "bad" }, "no") : el("span", { class: "good" }, "yes")) },
    { title: "Load", cell: (p) => format.percent(p.rates.tx == null || !p.now.rate_bps ? null : p.rates.tx / p.now.rate_bps) },
    { title: "Queue", cell: (p) => format.bytes(p.now.queue_depth_bytes) },
    { title: "Dropped/s", cell: (p) => rate(p.rates.dropped) },
    { title: "Missed by the device", cell: (p) => format.count(sum(p.now.device?.device_missed_packets_total)) },
    { title: "Problem", left: true, cell: (p) => el("span", { class: "why" }, p.problem ?? "–") },
  ], { empty: "No port is known yet." });
  const node = el("section", { class: "panel" }, el("h2", {}, "Is it well?"), verdict, facts, notices, table.node);

  const congestion = () => {
    const e = [...state.episodes.values()].at(-1);
    if (!e) return "none since the start";
    return `${e.end ? "last" : "now"}: queue ${e.port}/${e.class}, from ${moment(e.start)}, at most ${format.bytes(e.peak_bytes)}; notifications: ${counts(e.notifications)}`;
  };

  const update = () => {
    const { mode, sentence, bad } = wellness(state), ports = [...state.ports.values()];
    const total = (name) => ports.reduce((n, p) => n + (p.rates[name] ?? 0), 0);
    const drops = ports.flatMap((p) => Object.entries(dropped(p)).filter(([, n]) => n).map(([why, n]) => `${p.name}: ${format.count(n)} ${why}`));
    setText(verdict, sentence);
    verdict.className = "well " + (!state.health ? "muted" : bad ? "bad" : "good");
    facts.replaceChildren(...[
      ["Mode", mode.replace("mode ", "")], ["Senders", `${rate(total("notified") + total("observed"))} notifications a second, ${rate(total("suppressed"))} suppressed`],
      ["Congestion", congestion()], ["Dropped since the start", drops.slice(0, 8).join("; ") || "nothing"],
      ...Object.entries(state.health?.services ?? {}).map(([key, why]) => [key, why]),
    ].flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
    notices.replaceChildren(...(state.health?.notices ?? []).map((n) => el("li", {}, n)));
    table.show(ports.map((p) => ({ ...p, problem: state.health?.problems?.[p.name] })));
  };
  return { node, update, kinds: ["health", "mode", "counters", "episodes"] };
};
