// RDMA: what is wrong with the connections that pass the gateway, and what passes of one of them now.
import { el, setText } from "../../common/dom.js";
import { View } from "../../diagnose/view.js";
import { get } from "../api.js";
import { clock } from "../../common/table.js";

const seconds = 2; // for which a connection is recorded

export const make = () => {
  let report = null;
  const trace = (connection, requester) => {
    const { ends } = report.connections[connection], [from, to] = [ends[requester], ends[1 - requester]];
    return get("/v1/rdma/trace", { source_ip: from.ip, destination_ip: to.ip, source_qp: from.qp, destination_qp: to.qp, duration: seconds + "s" });
  };
  const view = new View({ trace, recording: `Recording its packets for ${seconds} s` }), state = el("p", { class: "muted", role: "status" });
  view.node.hidden = true;
  const load = async () => {
    setText(state, "Asking the gateway…");
    try {
      report = await get("/v1/rdma");
      view.show(report);
      view.node.hidden = false;
      setText(state, `As of ${clock(Date.now())}.`);
    } catch (error) {
      setText(state, error.message);
    }
  };
  const node = el("div", { class: "stack" }, el("section", { class: "panel bar" }, el("h2", {}, "RDMA connections"), state, el("button", { type: "button", onclick: load }, "Refresh")), view.node);
  return { node, update: () => {}, show: load, kinds: [] };
};
