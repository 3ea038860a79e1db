// What a click shows: the fields of a notification, or the steps of the gateway's decision about a sender.
import { el } from "../common/dom.js";

const states = { pass: "passes", stop: "stops", wait: "waits", unknown: "–" };

// decoded is a notification field by field.
export const decoded = (d, where) => [
  el("h3", {}, `${d.kind} from ${d.from} to ${d.to}`),
  el("p", { class: "muted" }, where, d.refused ? ` A receiver refuses it: ${d.refused}` : " Its addresses are those on the wire: a standard CNP has the receiver's, as NICs obey no other."),
  el("table", {}, el("caption", { class: "hidden" }, "Fields of the notification"),
    el("thead", {}, el("tr", {}, ...["Header", "Field", "Value", "Specified in"].map((t) => el("th", { scope: "col" }, t)))),
    el("tbody", {}, ...d.fields.map((f, i) => el("tr", {}, el("td", {}, i && d.fields[i - 1].layer === f.layer ? "" : f.layer),
      el("th", { scope: "row" }, f.name), el("td", {}, f.value), el("td", { class: "muted" }, f.source))))),
  el("pre", {}, d.hex),
];

// explained is why a sender is or isn't notified.
export const explained = (x, where) => [
  el("h3", {}, `Host ${x.host}, ${where}`),
  ...x.flows.flatMap((f) => [
    el("p", {}, el("strong", {}, f.notified ? "Notified" : "Not notified now"), ` by gateway ${f.gateway} about its flow to host ${f.receiver}. The steps of the decision:`),
    el("table", {}, el("caption", { class: "hidden" }, `Decision about the flow to host ${f.receiver}`),
      el("thead", {}, el("tr", {}, ...["Step", "Result", "Because"].map((t) => el("th", { scope: "col" }, t)))),
      el("tbody", {}, ...f.gates.map((g) => el("tr", {}, el("th", { scope: "row" }, g.gate),
        el("td", { class: "state" + (g.result === "stop" ? " bad" : g.result === "pass" ? " good" : "") }, states[g.result]),
        el("td", {}, g.text + (g.reason ? ` (${g.reason})` : ""), g.key ? el("span", { class: "muted" }, `; change ${g.key}`) : null))))),
  ]),
  x.flows.length ? null : el("p", {}, "No gateway has seen a packet of it yet."),
  x.more ? el("p", {}, `and ${x.more} more receivers`) : null,
].filter(Boolean);
