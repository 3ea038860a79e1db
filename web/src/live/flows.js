// A table of flows, and the explanation of why a sender is or isn't notified.
import { el } from "../common/dom.js";
import * as format from "../common/format.js";
import { get } from "./api.js";
import { counts, host, orDash, scope, Table } from "../common/table.js";

// flowTable shows flows. title names the table, and why(flow), if given, is called by a button of each.
export const flowTable = (title, why) => new Table(title, [
  { title: "Sender", cell: (f) => host(f.source_ip) },
  { title: "QP", cell: (f) => (f.source_qp != null ? f.source_qp : f.candidate_qp != null ? f.candidate_qp + "?" : "–") },
  { title: "Receiver", left: true, cell: (f) => host(f.destination_ip) },
  { title: "QP", cell: (f) => f.destination_qp },
  { title: "VLAN or tunnel", left: true, cell: scope },
  { title: "Rate", cell: (f) => format.rate(f.rate_bps) },
  { title: "Bytes", cell: (f) => format.bytes(f.bytes) },
  { title: "Queued", cell: (f) => format.bytes(f.queued_bytes ?? 0) },
  { title: "Marked", cell: (f) => format.count(f.ecn_marked) },
  { title: "Notifications", left: true, cell: (f) => counts(f.notifications) },
  { title: "QP found by", left: true, cell: (f) => `${f.qp_state}${f.qp_evidence ? ", " + f.qp_evidence : ""}` },
  { title: "Ended", left: true, cell: (f) => orDash(f.ended) },
  ...(why ? [{ title: "Why", left: true, cell: (f) => el("button", { type: "button", class: "link", onclick: () => why(f) }, "explain") }] : []),
], { empty: "No such flow." });

const results = { pass: ["✓", "passes", "good"], stop: ["✕", "stops", "bad"], wait: ["…", "waits", ""], unknown: ["?", "not decided", "muted"] };

// explain writes the steps of the decision about a flow's sender.
export const explain = async (to, f) => {
  to.hidden = false;
  to.replaceChildren(el("p", { class: "muted" }, "Asking the gateway…"));
  try {
    const e = await get("/v1/explain", { source_ip: f.source_ip, destination_ip: f.destination_ip, qp: f.destination_qp });
    const parts = e.flows.length ? e.flows : [{ ...f, notified: e.notified, gates: e.gates ?? [] }];
    to.replaceChildren(...parts.map((x) => el("div", {},
      el("h3", {}, `${x.source_ip} to ${x.destination_ip}, QP ${x.destination_qp}: ${x.notified ? "its sender is notified" : "its sender is not notified"}`),
      el("ol", { class: "gates" }, ...x.gates.map((g) => {
        const [mark, word, style] = results[g.result] ?? results.unknown;
        return el("li", { class: style || false }, el("span", { "aria-hidden": "true" }, mark + " "), el("b", {}, g.gate), ` ${word}: ${g.text} `, g.key ? el("code", {}, g.key) : null);
      })))));
  } catch (e) {
    to.replaceChildren(el("p", { class: "bad" }, e.message));
  }
};
