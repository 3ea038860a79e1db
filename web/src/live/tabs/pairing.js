// Pairing: how the senders' QPs were found, and the pairs.
import { el } from "../../common/dom.js";
import * as format from "../../common/format.js";
import { get } from "../api.js";
import { table } from "../columns.js";
import { Pager, Table } from "../../common/table.js";

const names = { static: "the operator's map", hint: "a host agent's hint", cm: "RDMA-CM", deth: "DETH", port: "the UDP source port", psn: "PSNs", cnp: "a receiver's CNP" };

export const make = ({ state }) => {
  const evidence = new Table("Evidence", [
    { title: "Evidence", cell: (e) => names[e.name] ?? e.name },
    { title: "Seen", cell: (e) => format.count(e.seen) },
    { title: "QPs confirmed", cell: (e) => format.count(e.confirmed) },
  ], { empty: "No evidence about any sender's QP yet." });
  const facts = el("p");
  const pairs = new Pager(table("pairs", "Pairs", "No sender's QP is known."), async (offset, limit) => {
    const r = await get("/v1/pairs", { offset: offset || null, limit, qp_state: which.value });
    return { rows: r.pairs, more: r.more };
  });
  const which = el("select", { onchange: () => pairs.go(0) }, el("option", { value: "" }, "all"), el("option", { value: "confirmed" }, "confirmed"), el("option", { value: "candidate" }, "candidates"));
  const node = el("div", { class: "stack" }, el("section", { class: "panel" }, el("h2", {}, "How senders' QPs were found"), facts, evidence.node),
    el("section", { class: "panel" }, el("div", { class: "bar" }, el("h2", {}, "Pairs of QPs"), el("label", {}, "State", which),
      el("button", { type: "button", onclick: () => pairs.go() }, "Refresh")), el("p", { class: "muted" }, "A notification names the sender's QP only if it is confirmed."), pairs.node));
  const update = () => {
    const c = state.counters?.counters ?? {}, seen = c.qp_evidence_total ?? {}, confirmed = c.qp_confirmed_total ?? {};
    facts.textContent = `${format.count(c.flows ?? 0)} flows are known; ${format.count(c.qp_contradictions_total ?? 0)} contradictions, ${format.count(c.qp_reuses_total ?? 0)} reuses of a QP.`;
    evidence.show(Object.keys(names).filter((n) => seen[n] || confirmed[n]).map((n) => ({ name: n, seen: seen[n] ?? 0, confirmed: confirmed[n] ?? 0 })));
  };
  return { node, update, show: () => pairs.go(), kinds: ["counters"] };
};
