// Notifications: the latest that were sent, and the latest that were not, with their reasons.
import { el } from "../../common/dom.js";
import * as format from "../../common/format.js";
import { sum } from "../state.js";
import { clock, counts, host, latestFirst, orDash, scope, Table } from "../../common/table.js";

const shown = 200;

export const notificationTable = (title) => new Table(title, [
  { title: "Time", cell: (n) => clock(Date.parse(n.time)) + "." + String(new Date(n.time).getUTCMilliseconds()).padStart(3, "0") },
  { title: "Kind", left: true, cell: (n) => orDash(n.kind) },
  { title: "Asks for", left: true, cell: (n) => (n.action ? n.action + (n.parameter ? " " + n.parameter : "") : "–") },
  { title: "Sender", left: true, cell: (n) => host(n.source_ip) },
  { title: "Receiver", left: true, cell: (n) => host(n.destination_ip) },
  { title: "Why", left: true, cell: (n) => el("span", { class: "why" }, n.why) },
  { title: "Outcome", left: true, cell: (n) => (n.reason ? `${n.outcome}: ${n.reason}` : n.outcome) },
  { title: "Sender's QP", cell: (n) => orDash(n.source_qp) },
  { title: "Receiver's QP", cell: (n) => n.destination_qp },
  { title: "VLAN or tunnel", left: true, cell: scope },
  { title: "Flow's rate", cell: (n) => format.rate(n.flow_rate_bps) },
  { title: "Queue", left: true, cell: (n) => n.port + "/" + n.class },
  { title: "Depth", cell: (n) => format.bytes(n.queue_depth_bytes) },
], { empty: "No such notification." });

export const make = ({ state }) => {
  const table = notificationTable("Notifications"), totals = el("p"), reasons = el("p", { class: "muted" }), missed = el("p", { class: "muted" });
  const which = el("select", { onchange: () => update() }, el("option", { value: "sent" }, "sent"), el("option", { value: "suppressed" }, "not sent"));
  const node = el("section", { class: "panel" }, el("div", { class: "bar" }, el("h2", {}, "Latest notifications"), el("label", {}, "Which", which)), totals, reasons, missed, table.node);
  const update = () => {
    const c = state.counters?.counters ?? {};
    totals.textContent = `Since the start: ${format.count(sum(c.notifications_sent_total))} sent (${counts(c.notifications_sent_total)})` +
      (sum(c.notifications_observed_total) ? `, ${format.count(sum(c.notifications_observed_total))} observed` : "") + ".";
    reasons.textContent = `Not sent, by reason: ${counts(c.notifications_suppressed_total)}.`;
    missed.textContent = state.missed ? `This page did not keep up, and missed ${format.count(state.missed)} events.` : "";
    table.show(latestFirst(state.notifications[which.value]).slice(0, shown));
  };
  return { node, update, kinds: ["notifications", "suppressed", "missed", "counters"] };
};
