// RDMA: what is wrong with the connections that pass the gateway.
import { el, setText } from "../../common/dom.js";
import { View } from "../../diagnose/view.js";
import { get } from "../api.js";
import { clock } from "../../common/table.js";

export const make = () => {
  const view = new View({ trace: null }), state = el("p", { class: "muted", role: "status" });
  view.node.hidden = true;
  const load = async () => {
    setText(state, "Asking the gateway…");
    try {
      view.show(await get("/v1/rdma"));
      view.node.hidden = false;
      setText(state, `As of ${clock(Date.now())}.`);
    } catch (error) {
      setText(state, error.message);
    }
  };
  const node = el("div", { class: "stack" }, el("section", { class: "panel bar" }, el("h2", {}, "RDMA connections"), state, el("button", { type: "button", onclick: load }, "Refresh")), view.node);
  return { node, update: () => {}, show: load, kinds: [] };
};
