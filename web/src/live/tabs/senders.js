// Senders: those with the highest rates, and all flows page by page.
import { el } from "../../common/dom.js";
import * as format from "../../common/format.js";
import { get } from "../api.js";
import { table } from "../columns.js";
import { Pager } from "../../common/table.js";

export const make = ({ state, live }) => {
  const top = table("senders", "Senders", "No RDMA flow has passed.");
  const title = el("h2", {}, "Senders");
  const flows = new Pager(table("flows", "Flows", "No such flow."), async (offset, limit) => {
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
