// A host's page: its flows, which notifications it got, and how it reacted.
import { el } from "../../common/dom.js";
import * as format from "../../common/format.js";
import { Plot } from "../../common/plots.js";
import { get } from "../api.js";
import { explain, flowTable } from "../flows.js";
import { Series } from "../state.js";
import { clock, latestFirst, least, Pager } from "../../common/table.js";
import { reactions } from "./episodes.js";
import { notificationTable } from "./notifications.js";

const every = 2000; // ms

export const make = ({ state, live }) => {
  let address = "", timer = 0, plot = null, before = null, turn = 0;
  const rates = new Series(1), asked = new Series(1);
  const title = el("h2", {}, "Host"), facts = el("p", { role: "status" }), hosts = [el("div"), el("div")], why = el("div", { class: "explanation", hidden: true });
  const pager = (key, name) => new Pager(flowTable(name, live && key === "source_ip" ? (f) => explain(why, f) : null), async (offset, limit) => {
    const r = await get("/v1/flows", { [key]: address, sort: live ? "rate" : "bytes", interval: live ? "500ms" : null, offset: offset || null, limit });
    return { rows: r.flows, more: r.more };
  }, 25);
  const sends = pager("source_ip", "Flows that it sends"), receives = pager("destination_ip", "Flows that it receives");
  const got = notificationTable("Notifications about its flows"), held = notificationTable("Notifications that were not sent"), reacted = reactions("How it reacted");
  const find = el("input", { type: "text", required: true, autocomplete: "off", spellcheck: "false", size: 30 });
  const form = el("form", { class: "bar", onsubmit: (e) => {
    e.preventDefault();
    location.hash = "host=" + encodeURIComponent(find.value.trim());
  } }, el("label", {}, "Address of a host", find), el("button", { type: "submit" }, "Show"));
  const panel = (name, ...nodes) => el("section", { class: "panel" }, el("h3", {}, name), ...nodes);
  const found = el("div", { class: "stack", hidden: true },
    panel("Rate and notifications", el("div", { class: "plots" }, ...hosts)),
    panel("Flows that it sends", sends.node, why), panel("Flows that it receives", receives.node),
    panel("Notifications about its flows, the latest first", got.node), panel("Notifications about its flows that were not sent, and why", held.node),
    panel("How it reacted, by congestion episode: its flows' rates before and after the first notification", reacted.node));
  const node = el("div", { class: "stack" }, el("section", { class: "panel" }, title, form, facts), found);

  const look = async (lists) => {
    const asking = ++turn, of = { source_ip: address };
    try {
      const all = await get("/v1/senders", { ...of, interval: live ? "500ms" : null, limit: 100 });
      if (asking !== turn) return;
      const sum = (f) => all.senders.reduce((n, s) => n + (f(s) ?? 0), 0);
      const total = sum((s) => s.notifications), now = Date.now() / 1000, rate = all.senders.length ? sum((s) => s.rate_bps) : null;
      facts.textContent = all.senders.length ? `${format.count(sum((s) => s.flows))} flows, ${live ? format.rate(rate) + " now, " : ""}${format.bytes(sum((s) => s.bytes))} sent, ` +
        `${format.bytes(sum((s) => s.queued_bytes))} in a queue, ${format.count(total)} notifications` + (all.senders.some((s) => s.unresponsive) ? "; it does not react to notifications." : ".")
        : "It sends no RDMA flow that the gateway knows.";
      if (live) {
        rates.push(now, [rate]);
        asked.push(now, [before == null ? null : total - before]);
        before = total;
        plot?.[0].update(rates.columns, least(rates.columns[0]));
        plot?.[1].update(asked.columns, least(asked.columns[0]));
      }
      if (!lists) return;
      const sent = await get("/v1/notifications", { ...of, limit: 200 }), suppressed = await get("/v1/notifications", { ...of, outcome: "suppressed", limit: 200 });
      if (asking !== turn) return;
      got.show(latestFirst(sent.notifications));
      held.show(latestFirst(suppressed.notifications));
    } catch (e) {
      if (asking === turn) facts.textContent = e.message;
    }
  };

  const update = () => {
    const all = [];
    for (const e of [...state.episodes.values()].sort((a, b) => b.id - a.id)) {
      const seen = new Set();
      for (const f of [...e.senders, ...e.flows]) {
        const key = f.destination_ip + f.destination_qp;
        if (f.source_ip === address && !seen.has(key)) all.push(f);
        seen.add(key);
      }
    }
    reacted.show(all.slice(0, 100));
  };

  const show = (argument) => {
    clearInterval(timer);
    if (argument !== address) {
      address = argument;
      before = null;
      rates.clear();
      asked.clear();
      why.hidden = true;
    }
    find.value = address;
    title.textContent = address ? "Host " + address : "Host";
    found.hidden = !address;
    facts.textContent = address ? "" : "Choose a sender or receiver in a table, or type its address.";
    if (!address) return;
    plot ??= live && [new Plot(hosts[0], { title: "Rate of its flows", series: [{ label: "rate" }], value: format.rate, time: (s) => clock(s * 1000), sync: "host" }),
      new Plot(hosts[1], { title: "Notifications in 2 s", series: [{ label: "notifications" }], time: (s) => clock(s * 1000), sync: "host" })];
    hosts[0].parentNode.parentNode.hidden = !live;
    sends.go(0);
    receives.go(0);
    look(true);
    update();
    let looks = 0;
    if (live) timer = setInterval(() => look(++looks % 2 === 0), every);
  };
  return { node, update, show, hide: () => clearInterval(timer), kinds: ["episodes"] };
};
