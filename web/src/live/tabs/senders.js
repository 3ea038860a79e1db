// Senders: those with the highest rates, and all flows page by page.
import { el } from "../../common/dom.js";
import * as format from "../../common/format.js";
import { get } from "../api.js";
import { flowTable } from "../flows.js";
import { host, Pager, scope, Table } from "../../common/table.js";

export const make = ({ state, live }) => {
  const top = new Table("Senders", [
    { title: "Sender", cell: (s) => host(s.source_ip) },
    { title: "VLAN or tunnel", left: true, cell: scope },
    { title: "Flows", cell: (s) => format.count(s.flows) },
    { title: "Rate", cell: (s) => format.rate(s.rate_bps) },
    { title: "Bytes", cell: (s) => format.bytes(s.bytes) },
    { title: "Queued", cell: (s) => format.bytes(s.queued_bytes) },
    { title: "Marked packets", cell: (s) => format.count(s.ecn_marked) },
    { title: "Notifications", cell: (s) => format.count(s.notifications) },
    { title: "Reacts", left: true, cell: (s) => (s.unresponsive ? el("span", { class: "bad" }, "no") : "–") },
  ], { empty: "No RDMA flow has passed." });
  const title = el("h2", {}, "Senders");
  const flows = new Pager(flowTable("Flows"), async (offset, limit) => {
    const r = await get("/v1/flows", { sort: sort.value, interval: live && sort.value === "rate" ? "500ms" : null, offset: offset || null, limit });
    return { rows: r.flows, more: r.more };
  });
  const sort = el("select", { onchange: () => flows.go(0) }, ...["rate", "queued", "bytes", "notifications"].map((v) => el("option", { value: v }, v)));
  if (!live) sort.value = "bytes";
  const node = el("div", { class: "stack" }, el("section", { class: "panel" }, title, top.node),
    el("section", { class: "panel" }, el("div", { class: "bar" }, el("h2", {}, "Flows"), el("label", {}, "Largest by", sort),
      el("button", { type: "button", onclick: () => flows.go() }, "Refresh")), flows.node));
  const update = () => {
    const all = state.senders?.senders ?? [];
    const total = state.senders?.total ?? all.length;
    title.textContent = total > all.length ? `Senders: ${all.length} of ${format.count(total)}, the fastest first` : "Senders, the fastest first";
    top.show(all);
  };
  const show = async () => {
    flows.go();
    if (live) return;
    state.senders = await get("/v1/senders", { sort: "bytes", limit: 50 });
    update();
  };
  return { node, update, show, kinds: ["senders"] };
};
