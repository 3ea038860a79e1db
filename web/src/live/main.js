// The live view: tabs over what a gateway says of itself, or over a recording.
import "./live.css";
import { byId, el, setText } from "../common/dom.js";
import { themeButton } from "../common/theme.js";
import * as format from "../common/format.js";
import { events, get, Refused, setToken } from "./api.js";
import { Player } from "./player.js";
import { State } from "./state.js";
import { describe } from "./columns.js";
import { clock } from "../common/table.js";
import * as episodes from "./tabs/episodes.js";
import * as fleet from "./tabs/fleet.js";
import * as health from "./tabs/health.js";
import { wellness } from "./well.js";
import * as hostPage from "./tabs/host.js";
import * as notifications from "./tabs/notifications.js";
import * as pairing from "./tabs/pairing.js";
import * as ports from "./tabs/ports.js";
import * as rdma from "./tabs/rdma.js";
import * as reloads from "./tabs/reloads.js";
import * as results from "./tabs/results.js";
import * as senders from "./tabs/senders.js";

// The tabs. What a tab reads of the API is in readable, what comes as an event in watched of control/webserver/live.go. make returns {node, update(), show?(argument), hide?(), kinds}: update is called after an event of one of the kinds while the tab is shown.
const tabs = [
  { id: "results", title: "Results", make: results.make, when: (s) => s.charts.length > 0 || s.outcomes },
  { id: "health", title: "Health", make: health.make, live: true },
  { id: "ports", title: "Ports", make: ports.make },
  { id: "senders", title: "Senders", make: senders.make },
  { id: "episodes", title: "Episodes", make: episodes.make },
  { id: "notifications", title: "Notifications", make: notifications.make },
  { id: "pairing", title: "Pairing", make: pairing.make },
  { id: "rdma", title: "RDMA", make: rdma.make, live: true },
  { id: "fleet", title: "Fleet", make: fleet.make, live: true, when: (s) => s.fleet?.enabled },
  { id: "reloads", title: "Reloads", make: reloads.make, live: true },
  { id: "host", title: "Host", make: hostPage.make },
];

const silence = 1900, again = 500, redraw = 1000; // ms

const state = new State();
const made = new Map();
let live = true, watched = true, shown = null, current = null, heard = 0, told = 0, connected = false;
const nav = el("nav", { class: "tabs", "aria-label": "Views" }), body = el("div"), status = byId("status");

// watched is false of a recording of results alone: the tabs about a gateway would be empty.
const visible = () => tabs.filter((t) => (live || !t.live) && (watched || t.id === "results") && (!t.when || t.when(state)));

const drawTabs = () => nav.replaceChildren(...visible().map((t) => el("a", { href: "#" + t.id, "aria-current": t === current ? "page" : false }, t.title)));

const route = () => {
  const [id, argument] = location.hash.slice(1).split("=").map(decodeURIComponent);
  const all = visible(), tab = all.find((t) => t.id === id) ?? all[0];
  if (!made.has(tab.id)) made.set(tab.id, tab.make({ state, live, now: () => (live ? told || Date.now() : playedTo), clockOf: live ? undefined : (s) => format.time(s * 1e9) }));
  const next = made.get(tab.id);
  if (shown !== next) shown?.hide?.();
  shown = next;
  current = tab;
  drawTabs();
  body.replaceChildren(shown.node);
  document.title = `${tab.title}: ${title ?? (state.version?.gateway ?? "cnpgate") + " live"}`;
  shown.show?.(argument ?? "");
  shown.update();
};

// Redraw the shown tab at most once a second; a recording at each event.
let due = new Set(), timer = 0;
const redrawn = () => {
  timer = 0;
  if (shown?.kinds.some((k) => due.has(k))) shown.update();
  due = new Set();
};
state.listen((kind) => {
  due.add(kind);
  if (shown && nav.childElementCount !== visible().length) drawTabs(); // one has come or gone
  if (!timer) timer = setTimeout(redrawn, live && connected ? redraw : 100); // what comes first is shown soon
});

const say = (text, bad) => {
  setText(status, text);
  status.classList.remove("ill");
  status.classList.toggle("bad", Boolean(bad));
};

// summarize says in the header which gateway it is, its mode, and in a sentence whether it is well.
const summarize = () => {
  const v = state.version, { mode, sentence, bad } = wellness(state);
  say(`${v?.gateway ?? "Gateway"}${v?.version ? ", " + v.version.replace(/\b([0-9a-f]{8})[0-9a-f]{32}\b/, "$1") : ""}: connected; ${mode}. ${sentence}`, false);
  status.classList.toggle("ill", bad);
};

const lost = (why) => {
  if (connected) state.gap(told + 1);
  connected = false;
  say(`No connection to the gateway since ${clock(heard || Date.now())}: ${why}. Trying again.`, true);
};

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// follow reads events until the page is closed, and connects again whenever they end or stop.
const follow = async () => {
  for (;;) {
    const abort = new AbortController();
    const watch = setInterval(() => {
      if (heard && Date.now() - heard > silence) abort.abort();
    }, 100);
    try {
      heard = 0;
      await events("/events", abort.signal, (kind, value, time) => {
        heard = Date.now();
        if (kind === "gone") return lost(value.error);
        state.apply(kind, value, (told = time));
        if (kind === "counters") connected = true;
        if (connected) summarize();
      });
      lost("it has ended the connection");
    } catch (e) {
      if (e instanceof Refused && e.status === 401) {
        clearInterval(watch);
        return askToken(e.message);
      }
      lost(abort.signal.aborted ? "it says nothing" : e.message);
    }
    clearInterval(watch);
    await pause(again);
  }
};

const askToken = (why) => {
  const field = el("input", { type: "password", required: true, autocomplete: "off", size: 40 });
  byId("main").replaceChildren(el("form", { class: "panel stack", onsubmit: (e) => {
    e.preventDefault();
    setToken(field.value.trim());
    start();
  } }, el("h2", {}, "Token"), el("p", {}, why + ". It stays in this page, and is asked for again when the page is loaded."), el("label", {}, "Token", field), el("button", { type: "submit", class: "primary" }, "Show")));
  field.focus();
};

let playedTo = 0, title = null; // of a recording

// play shows a recording.
const play = async () => {
  const recording = await get("/recording");
  state.charts = recording.charts ?? [];
  const begin = recording.began_unix_ms ?? 0;
  const apply = (e) => {
    playedTo = begin + e.at_ms;
    state.apply(e.kind, e.data, e.at_ms);
  };
  const restart = () => {
    const { charts } = state;
    state.reset();
    state.charts = charts;
  };
  const all = recording.events ?? [];
  watched = all.some((e) => e.kind !== "outcomes");
  const player = new Player(all, { restart, apply });
  byId("main").prepend(player.node);
  title = recording.title || "a run";
  setText(byId("title"), `cnpgate: recording of ${title}`);
  say("");
};

const start = async () => {
  byId("main").replaceChildren(nav, body);
  say("Connecting.");
  for (;;) {
    try {
      const source = await get("/source");
      describe(source.tables);
      live = source.live;
      if (!live) await play();
      break;
    } catch (e) {
      if (e instanceof Refused && e.status === 401) return askToken(e.message);
      lost(e.message);
      await pause(again);
    }
  }
  window.onhashchange = route;
  route();
  if (live) follow();
};

themeButton(byId("theme"));
if (location.protocol === "file:") byId("main").append(el("p", { class: "panel" }, "This view needs a gateway or a recording: cnpgate web serves it. The playground works from a file."));
else start();
