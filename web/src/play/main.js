// The playground: runs a scenario with two responses in a worker thread, and draws what the engine says.
import "./play.css";
import { themeButton } from "../common/theme.js";
import { byId, el, setText } from "../common/dom.js";
import * as format from "../common/format.js";
import { Engine } from "../common/engine.js";
import { Pane } from "./panes.js";
import { Controls, responses, speeds } from "./controls.js";
import * as address from "./state.js";
import * as numbers from "./numbers.js";
import * as details from "./details.js";

const budget = 24; // ms of the worker for a frame
const resultsEvery = 700; // ms between two looks at the results

class Playground {
  constructor(state) {
    this.state = state;
    this.engine = new Engine((text) => this.say(text, true));
    this.panes = [0, 1].map((n) => new Pane(n, (hit) => this.clicked(n, hit)));
    this.controls = new Controls(this.engine, state, (another) => this.changed(another));
    this.run = 0; // number of the run: answers about an earlier one are dropped
    this.listen();
  }

  say(text, wrong = false) {
    const message = byId("message");
    setText(message, text);
    message.classList.toggle("wrong", wrong);
    if (!wrong) return;
    setText(byId("verdict"), "");
    this.shown();
  }

  // shown ends the time in which only the introduction is visible.
  shown() {
    document.querySelector("main").classList.remove("loading");
  }

  listen() {
    const { state } = this;
    byId("play").onclick = () => this.play(state.pause || this.ended);
    byId("step").onclick = () => this.step();
    byId("restart").onclick = () => this.changed(false);
    const speed = byId("speed");
    speed.replaceChildren(...Object.entries(speeds).map(([value, text]) => el("option", { value, selected: value === state.speed }, text)));
    speed.onchange = () => {
      state.speed = speed.value;
      this.save();
    };
    byId("copy-link").onclick = async () => {
      await this.save();
      this.copy(location.href, "The link");
    };
    byId("copy-yaml").onclick = () => this.copyYAML();
    byId("copy-json").onclick = async () => this.copy(await this.engine.call("results"), "The results");
    byId("apply").onclick = () => this.apply();
    byId("json-details").ontoggle = () => this.showJSON();
    byId("editor").ontoggle = byId("gateway-yaml").ontoggle = () => this.showYAML();
    for (const n of [0, 1]) byId("why-" + n).onclick = () => this.clicked(n, { host: Number(byId("sender").value) });
    document.addEventListener("keydown", (e) => this.key(e));
    addEventListener("hashchange", () => location.reload());
  }

  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest?.("input, select, textarea, button, summary, a")) return;
    const act = { " ": () => byId("play").click(), ".": () => this.step(), r: () => this.changed(false) }[e.key];
    if (!act) return;
    e.preventDefault();
    act();
  }

  // changed starts anew, and plays, after a change of the controls.
  async changed(another) {
    Object.assign(this.state, { t: null, pause: false });
    if (another) await Promise.all([this.controls.showMenu(), this.controls.showKnobs()]);
    await this.start();
  }

  async save() {
    this.state.t = this.now;
    await address.write(this.state);
  }

  // start starts the scenario from the beginning.
  async start() {
    const run = ++this.run, { state } = this;
    this.setup = null;
    let setup;
    try {
      setup = await this.engine.json("start", { scenario: state.scenario, text: state.text, settings: state.settings, controls: state.controls, responses: [state.left, state.right] });
    } catch (error) {
      if (run === this.run) this.say(error.message, true);
      return;
    }
    if (run !== this.run) return;
    this.say((setup.warnings ?? []).join("\n"));
    this.ended = false;
    this.now = this.target = 0;
    this.asked = 0;
    this.titles = [state.left, state.right].map((r) => responses[r] ?? r);
    this.panes.forEach((p, n) => p.start(setup, this.titles[n]));
    byId("sender").replaceChildren(...setup.senders.map((h) => el("option", { value: h }, "host " + h)));
    this.setup = setup;
    this.plot();
    this.showResults();
    this.shown();
    if (state.pause) await this.jump(state.t ?? 0);
    else await this.save();
    this.showPlay();
    this.showYAML();
  }

  // jump runs to a time as fast as it can, and pauses there.
  async jump(t) {
    const run = this.run;
    do await this.advance(t, 200); // once also to its beginning: the picture needs a frame
    while (run === this.run && this.now < t && !this.ended);
    if (run !== this.run) return;
    this.target = this.now;
    this.draw();
    this.plot();
    await this.showResults();
    await this.save();
  }

  play(on) {
    if (this.ended) {
      this.changed(false);
      return;
    }
    this.state.pause = !on;
    this.showPlay();
    this.save();
    if (!on) this.showResults();
  }

  // step advances by a frame.
  async step() {
    if (!this.setup || this.ended) return;
    this.state.pause = true;
    this.showPlay();
    await this.jump(this.now + this.speed() / 30);
  }

  showPlay() {
    setText(byId("play"), this.ended ? "Play again" : this.state.pause ? "Play" : "Pause");
    document.body.dataset.paused = String(this.state.pause || this.ended);
  }

  // speed is the virtual time of a second on the screen, ns. "auto" begins slowly enough for the first notification to be seen, and is faster the later it is.
  speed() {
    return this.state.speed === "auto" ? Math.min(1e7, 2e4 + 0.6 * this.now) : Number(this.state.speed);
  }

  // frame is called for each frame of the screen.
  frame(at) {
    const passed = Math.min(100, at - (this.at ?? at));
    this.at = at;
    if (!this.setup) return;
    if (!this.state.pause && !this.ended) {
      this.target = Math.min(this.target + (this.speed() * passed) / 1000, this.now + this.speed() * 0.2);
      if (!this.busy && this.target > this.now) this.advance(Math.round(this.target), budget);
    }
    if (!this.state.pause) this.draw();
  }

  // advance asks the engine for the next frame, and takes it.
  async advance(until, ms) {
    const run = this.run;
    this.busy = true;
    try {
      const frame = await this.engine.json("advance", { until: Math.round(until), budget: ms });
      if (run === this.run) this.take(frame);
    } catch (error) {
      if (run === this.run) {
        this.setup = null;
        this.run++;
        this.say(error.message, true);
        console.error(error);
      }
    } finally {
      this.busy = false;
    }
  }

  take(frame) {
    this.now = frame.now;
    frame.panes.forEach((f, n) => this.panes[n].take(f));
    setText(byId("clock"), format.time(frame.now));
    document.body.dataset.now = String(frame.now);
    if (!this.first && !this.state.pause) { // a jump draws at its end only: a link shows the same dots each time
      this.first = true;
      this.draw();
      performance.mark("first picture");
    }
    const now = performance.now(), every = this.setup.senders.length > 16 ? 400 : 120;
    if (frame.ended && !this.ended) {
      this.ended = true;
      this.plot();
      this.showPlay();
      this.showResults();
      return;
    }
    if (!this.state.pause && now - (this.plotted ?? 0) > every) {
      this.plotted = now;
      this.plot();
    }
    if (!this.state.pause && now - this.asked > resultsEvery) {
      this.asked = now;
      this.showResults();
    }
  }

  draw() {
    for (const p of this.panes) p.picture.draw(this.now, this.speed());
  }

  plot() {
    const [l, r] = this.panes.map((p) => p.highest()), highest = Object.fromEntries(Object.keys(l).map((k) => [k, Math.max(l[k], r[k])]));
    for (const p of this.panes) p.plot(Math.max(this.now, this.setup.sample), highest);
  }

  async showJSON() {
    if (this.setup && byId("json-details").open) setText(byId("json"), await this.engine.call("results"));
  }

  async showResults() {
    const run = this.run, ended = this.ended;
    const results = await this.engine.json("results");
    if (run !== this.run) return;
    this.showJSON();
    numbers.show(byId("numbers"), results, this.titles);
    setText(byId("verdict"), numbers.verdict(results, ended));
    document.body.dataset.ended = String(ended);
  }

  // clicked shows what is known of a notification or a sender.
  async clicked(pane, { notice, host }) {
    const side = ["on the left", "on the right"][pane], at = format.time(this.now);
    let content;
    try {
      if (notice) {
        content = details.decoded(await this.engine.json("decode", { pane, number: notice.number }),
          `${notice.built ? "Built by a gateway" : "Sent by the receiver"}, ${side}; here on its way from ${this.setup.nodes[notice.from].name} to ${this.setup.nodes[notice.to].name}, ${format.time(notice.sent)} after the start.`);
      } else content = details.explained(await this.engine.json("explain", { pane, host }), `${side}, ${at} after the start`);
    } catch (error) {
      content = [el("p", { class: "bad" }, error.message)];
    }
    const detail = byId("detail");
    detail.replaceChildren(...content);
    detail.focus({ preventScroll: true });
    detail.scrollIntoView({ block: "nearest" });
  }

  async copy(text, what) {
    try {
      await navigator.clipboard.writeText(text);
      this.say(what + " is on the clipboard.");
    } catch {
      this.say(`The browser doesn't let this page write to the clipboard. ${what}:\n${text}`);
    }
  }

  async yaml() {
    const t = await this.engine.json("texts");
    return { scenario: t.scenario, gateways: (t.gateways ?? []).map((g) => `# gateway ${g.name}\n${g.yaml}`).join("---\n") };
  }

  async copyYAML() {
    const t = await this.yaml();
    this.copy(`# scenario, for: cnpgate sim FILE --web\n${t.scenario}---\n${t.gateways}`, "The YAML");
  }

  async showYAML() {
    if (!this.setup || (!byId("editor").open && !byId("gateway-yaml").open)) return;
    const t = await this.yaml();
    byId("yaml").value = t.scenario;
    setText(byId("gateways"), t.gateways);
  }

  // apply runs the YAML of the editor.
  async apply() {
    const text = byId("yaml").value;
    const name = /^name:\s*(\S+)/m.exec(text)?.[1] ?? "yours";
    Object.assign(this.state, { scenario: name, text, controls: {}, settings: [], t: null });
    byId("seed").value = /^seed:\s*(\d+)/m.exec(text)?.[1] ?? 1;
    try {
      await this.changed(true);
    } catch (error) {
      this.say(error.message, true);
    }
  }
}

const begin = async () => {
  themeButton(byId("theme"));
  const page = new Playground(await address.read());
  const frame = (at) => {
    page.frame(at);
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  try {
    await Promise.all([page.controls.showMenu(), page.controls.showKnobs()]);
    await page.start();
  } catch (error) {
    page.say(error.message, true);
  }
};

begin();
