// Fleet: the gateways of the site, as this one knows them, and what they share.
import { el } from "../../common/dom.js";
import * as format from "../../common/format.js";
import { table } from "../columns.js";
import { counts } from "../../common/table.js";

export const make = ({ state }) => {
  const title = el("h2", {}, "Fleet"), summary = el("p", { role: "status" }), refused = el("p");
  const members = table("members", "Gateways");
  const connections = table("connections", "Servers");
  const found = el("div", { class: "stack" }, members.node, el("h3", {}, "Connections to nats-servers"), connections.node, refused);
  const node = el("section", { class: "panel" }, title, summary, found);
  const update = () => {
    const f = state.fleet;
    found.hidden = !f?.enabled;
    if (found.hidden) {
      summary.textContent = f ? "The configuration has no fleet." : "Not known.";
      return;
    }
    title.textContent = `Fleet of ${f.site}`;
    const s = f.shares, dropped = (f.counters.dropped_in ?? 0) + (f.counters.dropped_out ?? 0);
    summary.textContent = `${f.name} asks for the flows of ${format.count(s.wants)} pairs of hosts, is asked for ${format.count(s.wanted)}, ` +
      `knows ${format.count(s.remote_flows)} flows of others, and keeps ${format.count(s.pairs)} pairs for successors.`;
    members.show(f.members.map((m) => (m.self ? { ...m, name: m.name + " (this one)" } : m)));
    connections.show(f.connections);
    refused.textContent = `Messages without effect: ${counts(f.refused)}. Dropped as a queue was full: ${format.count(dropped)}.`;
  };
  return { node, update, kinds: ["fleet"] };
};
