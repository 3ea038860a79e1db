// Fleet: the gateways of the site, as this one knows them, and what they share.
import { el } from "../../common/dom.js";
import * as format from "../../common/format.js";
import { counts, orDash, Table } from "../../common/table.js";

const since = (ms) => (ms ? format.time(ms * 1e6) : "–");

export const make = ({ state }) => {
  const title = el("h2", {}, "Fleet"), summary = el("p", { role: "status" }), refused = el("p");
  const members = new Table("Gateways", [
    { title: "Gateway", cell: (m) => m.name + (m.self ? " (this one)" : "") },
    { title: "State", left: true, cell: (m) => el("span", { class: m.member_state === "active" ? "good" : "bad" }, m.member_state) },
    { title: "Version", left: true, cell: (m) => orDash(m.version) },
    { title: "Up for", cell: (m) => since(m.up_ms) },
    { title: "Last heard", cell: (m) => since(m.silent_ms) },
    { title: "There and back", cell: (m) => since(m.round_us / 1000) },
    { title: "Flows of others", cell: (m) => format.count(m.remote_flows) },
    { title: "Pairs for successors", cell: (m) => format.count(m.pairs) },
    { title: "Pairs of hosts asked for", cell: (m) => format.count(m.wants) },
  ]);
  const connections = new Table("Servers", [
    { title: "Server", cell: (c) => orDash(c.url) },
    { title: "Connected", left: true, cell: (c) => el("span", { class: c.connected ? "good" : "bad" }, c.connected ? "yes" : "no") },
    { title: "Reconnects", cell: (c) => format.count(c.reconnects) },
    { title: "Last error", left: true, cell: (c) => el("span", { class: "why" }, orDash(c.error)) },
  ]);
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
    members.show(f.members);
    connections.show(f.connections);
    refused.textContent = `Messages without effect: ${counts(f.refused)}. Dropped as a queue was full: ${format.count(dropped)}.`;
  };
  return { node, update, kinds: ["fleet"] };
};
