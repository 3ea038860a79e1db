// A pane: the picture, the list of the latest notifications, and the plots of one response.
import { Plot } from "../common/plots.js";
import { el, byId, setText } from "../common/dom.js";
import { seriesStyle } from "../common/theme.js";
import * as format from "../common/format.js";
import { Picture } from "./picture.js";
import { Series } from "./series.js";

const listed = 8; // senders with an entry of their own in the legend
const latest = 4; // notifications in the list

export class Pane {
  // clicked is called with {notice} or {host}.
  constructor(number, clicked) {
    this.number = number;
    this.clicked = clicked;
    this.picture = new Picture(byId("picture-" + number), clicked);
    this.title = byId("title-" + number);
    this.list = byId("notices-" + number);
    const plot = (title, options) => {
      const host = el("div");
      byId("plots-" + number).append(host);
      return new Plot(host, { title, of: ["left", "right"][number], series: [], sync: "time", ...options });
    };
    this.plots = {
      queue: plot("WAN queue", { value: format.bytes, height: 150 }),
      rates: plot("Rate of each sender", { value: format.rate, height: 150 }),
      lost: plot("Lost packets so far", { value: format.count, height: 90 }),
      notified: plot("Notifications so far", { value: format.count, height: 90 }),
    };
  }

  // start shows a new run.
  start(setup, title) {
    setText(this.title, title);
    this.setup = setup;
    this.queues = setup.gateways[this.number];
    this.picture.start(setup, this.number);
    this.list.replaceChildren();
    this.noted = [];
    const { senders, sample } = setup, ports = this.queues.length;
    const each = (n, how) => Array(n).fill(how);
    this.columns = {
      queue: new Series([...each(ports, "max"), "max"], sample),
      rates: new Series([...each(ports, "mean"), ...each(senders.length, "mean")], sample),
      lost: new Series(["last"], sample),
      notified: new Series(["last", "last"], sample),
    };
    this.levels = this.queues.flatMap((q, i) => (q.reference ? [{ label: "q_ref", bytes: q.reference, at: i }] : [
      { label: "K_min", bytes: q.k_min, at: i }, { label: "K_max", bytes: q.k_max, at: i }]));
    const named = (text, q) => (ports > 1 ? `${text} of ${q.gateway}` : text);
    this.plots.queue.setSeries([
      ...this.queues.map((q, i) => ({ label: named("gateway", q), colour: ["s0", "s6"][i % 2], width: 2 })), { label: "switches", colour: "s4" },
      ...this.levels.map((l) => ({ label: named(l.label, this.queues[l.at]), colour: "s7", dash: l.label === "K_max" ? [2, 3] : [7, 3] }))]);
    this.plots.rates.setSeries([
      ...this.queues.map((q) => ({ label: named("F", q), colour: "text", dash: [7, 3], width: 2 })),
      ...senders.map((h, i) => ({ label: "host " + h, ...seriesStyle(i), unlisted: senders.length > listed, width: senders.length > listed ? 1 : 1.5 }))]);
    this.plots.lost.setSeries([{ label: "lost", colour: "bad", width: 2 }]);
    this.plots.notified.setSeries([{ label: "of gateways", colour: "s1", width: 2 }, { label: "CNPs of receivers", colour: "s3", dash: [7, 3], width: 2 }]);
    this.latest = senders.map((h) => ({ rate: 0, line: setup.lines[h] }));
  }

  // take takes a frame of the engine.
  take(frame) {
    const s = frame.samples, n = s.lost.length;
    for (let i = 0; i < n; i++) {
      this.columns.queue.push([...s.depth.map((c) => c[i]), s.switch[i]]);
      this.columns.rates.push([...s.fair.map((c) => c[i]), ...s.rates.map((c) => c[i])]);
      this.columns.lost.push([s.lost[i]]);
      this.columns.notified.push([s.notified[i], s.cnps[i]]);
    }
    if (n) this.latest.forEach((one, i) => (one.rate = s.rates[i][n - 1]));
    this.picture.show(frame, this.latest);
    this.note(frame.notices);
  }

  // note lists the latest notifications, the newest first. The buttons stay where they are, and say the same while one has the focus.
  note(notices) {
    if (this.list.contains(document.activeElement)) return;
    const arriving = notices.filter((n) => this.setup.nodes[n.to].kind === "host" || n.arrives < 0);
    this.noted = [...this.noted, ...arriving].slice(-latest);
    this.noted.toReversed().forEach((n, i) => {
      if (!this.list.children[i]) this.list.append(el("li", {}, el("button", { type: "button" })));
      const button = this.list.children[i].firstChild;
      setText(button, `${n.built ? "gateway" : "receiver"} → host ${this.setup.nodes[n.to].host}`);
      button.title = `${n.kind}, sent at ${format.time(n.sent)}: decode it`;
      button.onclick = () => this.clicked({ notice: n });
    });
  }

  // highest is the greatest value of each plot.
  highest() {
    const of = (columns) => columns.reduce((most, c) => c.reduce((a, b) => Math.max(a, b ?? 0), most), 0);
    const { queue, rates, lost, notified } = this.columns;
    return { queue: Math.max(of(queue.columns), ...this.levels.map((l) => l.bytes)), rates: of(rates.columns), lost: of(lost.columns), notified: of(notified.columns) };
  }

  // plot draws the plots, with the time axis up to end, and the others' up to the highest of both panes: left and right can be compared by eye.
  plot(end, highest) {
    const flat = (times, value) => times.map(() => value);
    const { queue, rates, lost, notified } = this.columns, range = [0, end];
    const fair = rates.columns.slice(0, this.queues.length).map((c) => c.map((v) => v || null));
    this.plots.queue.update([queue.times, ...queue.columns, ...this.levels.map((l) => flat(queue.times, l.bytes))], range, highest.queue);
    this.plots.rates.update([rates.times, ...fair, ...rates.columns.slice(this.queues.length)], range, highest.rates);
    this.plots.lost.update([lost.times, ...lost.columns], range, highest.lost);
    this.plots.notified.update([notified.times, ...notified.columns], range, highest.notified);
  }
}
