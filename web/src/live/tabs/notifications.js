// Notifications: the latest that were sent, and the latest that were not, with their reasons.
import { el } from "../../common/dom.js";
import * as format from "../../common/format.js";
import { sum } from "../state.js";
import { table } from "../columns.js";
import { counts, latestFirst } from "../../common/table.js";

const shown = 200;

export const notificationTable = (title) => table("notifications", title, "No such notification.");

export const make = ({ state }) => {
  const latest = notificationTable("Notifications"), totals = el("p"), reasons = el("p", { class: "muted" }), missed = el("p", { class: "muted" });
  const which = el("select", { onchange: () => update() }, el("option", { value: "sent" }, "sent"), el("option", { value: "suppressed" }, "not sent"));
  const node = el("section", { class: "panel" }, el("div", { class: "bar" }, el("h2", {}, "Latest notifications"), el("label", {}, "Which", which)), totals, reasons, missed, latest.node);
  const update = () => {
    const c = state.counters?.counters ?? {};
    totals.textContent = `Since the start: ${format.count(sum(c.notifications_sent_total))} sent (${counts(c.notifications_sent_total)})` +
      (sum(c.notifications_observed_total) ? `, ${format.count(sum(c.notifications_observed_total))} observed` : "") + ".";
    reasons.textContent = `Not sent, by reason: ${counts(c.notifications_suppressed_total)}.`;
    missed.textContent = state.missed ? `This page did not keep up, and missed ${format.count(state.missed)} events.` : "";
    latest.show(latestFirst(state.notifications[which.value]).slice(0, shown));
  };
  return { node, update, kinds: ["notifications", "suppressed", "missed", "counters"] };
};
