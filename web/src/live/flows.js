// Flows, and the explanation of why a sender is or isn't notified.
import { el } from "../common/dom.js";
import { get } from "./api.js";
import { table } from "./columns.js";

// flowTable shows flows; why(flow), if given, is called by a button of each.
export const flowTable = (title, why) => table("flows", title, "No such flow.",
  why ? [{ title: "Why", left: true, cell: (f) => el("button", { type: "button", class: "link", onclick: () => why(f) }, "explain") }] : []);

const results = { pass: ["✓", "passes", "good"], stop: ["✕", "stops", "bad"], wait: ["…", "waits", ""], unknown: ["?", "not decided", "muted"] };

// explain writes the steps of the decision about a flow's sender.
export const explain = async (to, f) => {
  to.hidden = false;
  to.replaceChildren(el("p", { class: "muted" }, "Asking the gateway…"));
  try {
    const e = await get("/v1/explain", { source_ip: f.source_ip, destination_ip: f.destination_ip, qp: f.destination_qp });
    const parts = e.flows.length ? e.flows : [{ ...f, notified: e.notified, gates: e.gates ?? [] }];
    to.replaceChildren(...parts.map((x) => el("div", {},
      el("h3", {}, `${x.source_ip} to ${x.destination_ip}, QP ${x.destination_qp}: ${x.notified ? "its sender is notified" : "its sender is not notified"}`),
      el("ol", { class: "gates" }, ...x.gates.map((g) => {
        const [mark, word, style] = results[g.result] ?? results.unknown;
        return el("li", { class: style || false }, el("span", { "aria-hidden": "true" }, mark + " "), el("b", {}, g.gate), ` ${word}: ${g.text} `, g.key ? el("code", {}, g.key) : null);
      })))));
  } catch (e) {
    to.replaceChildren(el("p", { class: "bad" }, e.message));
  }
};
