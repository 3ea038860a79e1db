// Reloads: what was changed since the start, or why it was refused.
import { el } from "../../common/dom.js";
import { fileDiffers } from "../well.js";
import { moment, orDash, Table } from "../../common/table.js";

export const make = ({ state }) => {
  const table = new Table("Reloads", [
    { title: "Time", cell: (r) => moment(r.time) },
    { title: "Outcome", left: true, cell: (r) => el("span", { class: r.outcome === "refused" ? "bad" : false }, r.outcome) },
    { title: "Changed keys", left: true, cell: (r) => el("span", { class: "why" }, orDash((r.changes ?? []).join(", "))) },
    { title: "Configuration afterwards", left: true, cell: (r) => el("code", {}, r.config_hash.slice(0, 12)) },
    { title: "Error", left: true, cell: (r) => el("span", { class: "why" }, orDash(r.error)) },
  ]);
  const differs = el("p", { class: "bad" }, "The configuration file differs from what is in force. The next start uses the file; cnpgate reload --dry-run prints what would change.");
  const node = el("section", { class: "panel" }, el("h2", {}, "Configuration in force, and reloads"), differs, table.node);
  const update = () => {
    differs.hidden = !fileDiffers(state);
    table.show(state.reloads.toReversed());
  };
  return { node, update, kinds: ["reloads", "counters"] };
};
