// Reloads: what was changed since the start, or why it was refused.
import { el } from "../../common/dom.js";
import { fileDiffers } from "../well.js";
import { table } from "../columns.js";

export const make = ({ state }) => {
  const all = table("reloads", "Reloads");
  const differs = el("p", { class: "bad" }, "The configuration file differs from what is in force. The next start uses the file; cnpgate reload --dry-run prints what would change.");
  const node = el("section", { class: "panel" }, el("h2", {}, "Configuration in force, and reloads"), differs, all.node);
  const update = () => {
    differs.hidden = !fileDiffers(state);
    all.show(state.reloads.toReversed());
  };
  return { node, update, kinds: ["reloads", "counters"] };
};
