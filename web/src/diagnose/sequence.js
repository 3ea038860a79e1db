// The time-sequence plot of one end's requests: PSNs over time, both directions.
import uPlot from "uplot";
import { el, setText } from "../common/dom.js";
import { colour, onTheme } from "../common/theme.js";
import * as format from "../common/format.js";

// The kinds of points (health/trace.go), from the lowest layer to the uppermost: what a person reads, colour, shape.
const kinds = [
  { kind: "ack", title: "answered (ACK)", colour: "s7", shape: "steps" },
  { kind: "request", title: "sent", colour: "s0", shape: "bar" },
  { kind: "response", title: "READ response", colour: "s2", shape: "bar" },
  { kind: "missing", title: "missing here", colour: "warn", shape: "box" },
  { kind: "late", title: "came late", colour: "s5", shape: "square" },
  { kind: "twice", title: "came twice", colour: "s3", shape: "ring" },
  { kind: "again", title: "sent again", colour: "bad", shape: "diamond" },
  { kind: "response-again", title: "READ response again", colour: "s1", shape: "diamond" },
  { kind: "dropped", title: "dropped by this gateway", colour: "bad", shape: "square" },
  { kind: "ce", title: "congestion mark (CE)", colour: "s1", shape: "plus" },
  { kind: "rnr-nak", title: "receiver not ready (RNR NAK)", colour: "s6", shape: "ring" },
  { kind: "nak", title: "receiver asks again (NAK)", colour: "text", shape: "cross" },
  { kind: "cnp", title: "slow down (CNP)", colour: "s6", shape: "mark" },
];
const byKind = new Map(kinds.map((k) => [k.kind, k]));
const ordinary = new Set(["ack", "request", "response"]);
const mostEvents = 200; // rows of the table of events
const near = 24; // CSS pixels: how far from a point the pointer may be
const many = 4000; // points: if there are more, the first event is shown in place of all
const readable = 400; // points that are shown around an event
const before = 60; // of those

// axisTime formats times in one unit, with as many digits as their step has.
const axisTime = (all, step) => {
  const largest = Math.max(...all.map(Math.abs));
  const [unit, name] = largest >= 1e9 ? [1e9, "s"] : largest >= 1e6 ? [1e6, "ms"] : largest >= 1e3 ? [1e3, "µs"] : [1, "ns"];
  let digits = 0;
  for (let n = step / unit; digits < 9 && Math.abs(n - Math.round(n)) > 1e-6 * n; n *= 10) digits++;
  return all.map((t) => (t / unit).toFixed(digits) + "\u00a0" + name);
};

// exactTime has microseconds, also after hours.
const exactTime = (ns) => (ns < 1e6 ? format.time(ns) : ns < 1e9 ? (ns / 1e6).toFixed(3) + "\u00a0ms" : (ns / 1e9).toFixed(6) + "\u00a0s");

const named = (p) => {
  const psns = p.psns > 1 ? `PSN ${format.count(p.psn)} to ${format.count(p.psn + p.psns - 1)}` : `PSN ${format.count(p.psn)}`;
  return `${byKind.get(p.kind).title}, ${psns}` + (p.packets > 1 ? `, ${format.count(p.packets)} packets` : "");
};

// shapes draw a point at x, r pixels large. top and bottom are the ends of its PSNs, edge is that of the plot.
const shapes = {
  bar: (c, x, top, bottom, r) => c.fillRect(x - r / 2.5, top - r / 2.5, r / 1.25, bottom - top + r / 1.25),
  box: (c, x, top, bottom, r) => c.strokeRect(x - r, top - r / 2, 2 * r, Math.max(bottom - top, 1) + r),
  square: (c, x, top, bottom, r) => c.fillRect(x - r, (top + bottom) / 2 - r, 2 * r, 2 * r),
  ring: (c, x, top, bottom, r) => {
    c.beginPath();
    c.arc(x, (top + bottom) / 2, r, 0, 7);
    c.stroke();
  },
  diamond: (c, x, top, bottom, r) => {
    const w = 0.8 * r;
    c.beginPath();
    c.moveTo(x, top - r);
    c.lineTo(x + w, top);
    c.lineTo(x + w, bottom);
    c.lineTo(x, bottom + r);
    c.lineTo(x - w, bottom);
    c.lineTo(x - w, top);
    c.fill();
  },
  plus: (c, x, top, bottom, r) => {
    const y = (top + bottom) / 2;
    c.beginPath();
    c.moveTo(x - r, y);
    c.lineTo(x + r, y);
    c.moveTo(x, y - r);
    c.lineTo(x, y + r);
    c.stroke();
  },
  cross: (c, x, top, bottom, r) => {
    const y = (top + bottom) / 2;
    c.beginPath();
    c.moveTo(x - r, y - r);
    c.lineTo(x + r, y + r);
    c.moveTo(x + r, y - r);
    c.lineTo(x - r, y + r);
    c.stroke();
  },
  mark: (c, x, top, bottom, r, edge) => {
    c.beginPath();
    c.moveTo(x - r, edge);
    c.lineTo(x + r, edge);
    c.lineTo(x, edge + 2 * r);
    c.fill();
  },
};

const swatch = (k) => {
  const c = `var(--${k.colour})`, line = { fill: "none", stroke: c, "stroke-width": 2 };
  const shape = {
    steps: ["svg:path", { ...line, d: "M1 9 H6 V3 H11" }], bar: ["svg:rect", { x: 4.5, y: 1, width: 3, height: 10, fill: c }], box: ["svg:rect", { ...line, x: 2, y: 2, width: 8, height: 8 }],
    square: ["svg:rect", { x: 2, y: 2, width: 8, height: 8, fill: c }], ring: ["svg:circle", { ...line, cx: 6, cy: 6, r: 4 }], diamond: ["svg:path", { d: "M6 0 L11 6 L6 12 L1 6", fill: c }],
    plus: ["svg:path", { ...line, d: "M6 1 V11 M1 6 H11" }], cross: ["svg:path", { ...line, d: "M2 2 L10 10 M10 2 L2 10" }], mark: ["svg:path", { d: "M1 1 H11 L6 11", fill: c }],
  }[k.shape];
  return el("svg:svg", { viewBox: "0 0 12 12", width: 12, height: 12, "aria-hidden": "true" }, el(...shape));
};

// Sequence shows a trace in an element.
export class Sequence {
  constructor() {
    this.hidden = new Set();
    this.legend = el("div", { class: "kinds", role: "group", "aria-label": "Shown in the plot" });
    this.body = el("div", { class: "sequence-body", "aria-hidden": "true", onmousemove: (e) => this.point(e), onmouseleave: () => this.say() });
    this.said = el("p", { class: "muted said" });
    this.events = el("tbody");
    this.more = el("p", { class: "muted" });
    const button = (text, onclick) => el("button", { type: "button", onclick }, text);
    this.next = button("Next event", () => this.toNext());
    this.node = el("div", { class: "sequence" },
      el("div", { class: "tools" }, button("All", () => this.zoom(null)), this.next, button("Zoom in", () => this.scale(0.5)), button("Zoom out", () => this.scale(2)),
        button("Earlier", () => this.move(-0.5)), button("Later", () => this.move(0.5))),
      this.body, this.said, this.legend,
      el("details", { class: "plot-table" }, el("summary", {}, "Events as a table"),
        el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Events" }, el("table", { class: "words" }, el("caption", { class: "hidden" }, "Events"),
          el("thead", {}, el("tr", {}, ...["Time", "What", "Packets"].map((t) => el("th", { scope: "col" }, t)))), this.events)), this.more));
    new ResizeObserver(() => this.resize()).observe(this.body);
    onTheme(() => this.points && this.draw());
  }

  // show plots a trace: its points are sorted by time.
  show(trace) {
    this.points = trace.points;
    this.hidden.clear();
    const sums = new Map();
    for (const p of this.points) sums.set(p.kind, (sums.get(p.kind) ?? 0) + p.packets);
    this.legend.replaceChildren(...kinds.filter((k) => sums.has(k.kind)).map((k) => {
      const b = el("button", { type: "button", "aria-pressed": "true", onclick: () => this.toggle(k.kind, b) }, swatch(k), el("span", {}, k.title), el("span", { class: "muted" }, format.count(sums.get(k.kind))));
      return b;
    }));
    const events = this.points.filter((p) => !ordinary.has(p.kind));
    this.next.disabled = events.length === 0;
    this.events.replaceChildren(...events.slice(0, mostEvents).map((p) => el("tr", {}, el("th", { scope: "row" }, exactTime(p.time_ns)), el("td", {}, named(p)), el("td", {}, format.count(p.packets)))));
    setText(this.more, events.length > mostEvents ? `The first ${mostEvents} of ${format.count(events.length)}.` : events.length ? "" : "Nothing but packets that were sent once, and answers.");
    this.note = trace.merged_ns > 0 ? `Packets of a kind within ${format.time(trace.merged_ns)} are one point.` : "";
    this.draw();
    if (events.length && this.points.length > many) this.toNext();
    this.say();
  }

  toggle(kind, button) {
    const hide = !this.hidden.delete(kind);
    if (hide) this.hidden.add(kind);
    button.setAttribute("aria-pressed", String(!hide));
    this.uplot.redraw();
  }

  draw() {
    this.uplot?.destroy();
    const em = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16, narrow = this.body.clientWidth < 500;
    this.height = Math.round((narrow ? 280 : 380) * em);
    this.body.style.height = this.height + "px";
    const axis = { stroke: colour("muted"), grid: { stroke: colour("grid"), width: 1 }, ticks: { show: false }, font: `${Math.round(12 * em)}px system-ui, sans-serif` };
    const times = this.points.map((p) => p.time_ns), none = { paths: () => null, points: { show: false } };
    this.whole = [times[0] ?? 0, Math.max(times.at(-1) ?? 0, (times[0] ?? 0) + 1000)];
    const margin = (this.whole[1] - this.whole[0]) / 50;
    this.whole = [this.whole[0] - margin, this.whole[1] + margin];
    this.uplot = new uPlot({
      width: Math.max(this.body.clientWidth, 100), height: this.height, padding: [16, 16, 0, 0], legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false } },
      scales: { x: { time: false, range: (u, min, max) => (min === times[0] && max === times.at(-1) ? this.whole : [min, Math.max(max, min + 100)]) },
        y: { range: (u, min, max) => [(min ?? 0) - ((max ?? 0) - (min ?? 0)) / 20 - 1, (max ?? 1) + ((max ?? 1) - (min ?? 0)) / 20 + 1] } },
      axes: [{ ...axis, size: 28 * em, space: narrow ? 80 : 100, values: (u, all, i, space, step) => axisTime(all, step) },
        { ...axis, size: (narrow ? 56 : 72) * em, label: "packet number (PSN)", labelSize: 18 * em, labelFont: axis.font, labelGap: 2, values: (u, all) => all.map((v) => (Number.isInteger(v) && v >= 0 ? format.count(v) : "")) }],
      series: [{}, none, none],
      hooks: { draw: [(u) => this.paint(u)] },
    }, [times, this.points.map((p) => p.psn), this.points.map((p) => p.psn + p.psns)], this.body);
  }

  // paint draws the points, a kind after the other.
  paint(u) {
    const c = u.ctx, ratio = devicePixelRatio, { left, top, width, height } = u.bbox, { min, max } = u.scales.x;
    const shown = this.points.filter((p) => p.time_ns >= min && p.time_ns <= max && !this.hidden.has(p.kind));
    const sums = new Map();
    for (const p of shown) sums.set(p.kind, (sums.get(p.kind) ?? 0) + 1);
    c.save();
    c.beginPath();
    c.rect(left, top - 16 * ratio, width, height + 16 * ratio);
    c.clip();
    for (const k of kinds) {
      c.fillStyle = c.strokeStyle = colour(k.colour);
      c.lineWidth = 1.5 * ratio;
      const n = sums.get(k.kind), r = (n > 800 ? 2.5 : n > 100 ? 3.5 : k.shape === "diamond" ? 6.5 : 4.5) * ratio;
      c.setLineDash(k.shape === "box" ? [3 * ratio, 2 * ratio] : []);
      if (k.shape === "steps") {
        this.paintSteps(u, c, k.kind);
        continue;
      }
      for (const p of shown) {
        if (p.kind !== k.kind) continue;
        const y = u.valToPos(p.psn, "y", true);
        shapes[k.shape](c, u.valToPos(p.time_ns, "x", true), p.psns > 1 ? u.valToPos(p.psn + p.psns - 1, "y", true) : y, y, r, top - 12 * ratio);
      }
    }
    c.restore();
  }

  // paintSteps draws the line of answers: all PSNs below it are acknowledged.
  paintSteps(u, c, kind) {
    if (this.hidden.has(kind)) return;
    c.beginPath();
    let y = null;
    for (const p of this.points) {
      if (p.kind !== kind) continue;
      const x = u.valToPos(p.time_ns, "x", true), to = u.valToPos(p.psn + p.psns - 1, "y", true);
      if (y == null) c.moveTo(x, to);
      else {
        c.lineTo(x, y);
        c.lineTo(x, to);
      }
      c.fillRect(x - devicePixelRatio, to - devicePixelRatio, 2 * devicePixelRatio, 2 * devicePixelRatio);
      y = to;
    }
    c.stroke();
  }

  resize() {
    const width = this.body.clientWidth;
    if (this.uplot && width > 0 && width !== this.uplot.width) this.uplot.setSize({ width, height: this.height });
  }

  // zoom shows a range of times; null: all.
  zoom(range) {
    const [min, max] = range ?? this.whole;
    this.uplot.setScale("x", { min, max });
  }

  scale(factor) {
    const { min, max } = this.uplot.scales.x, half = ((max - min) / 2) * factor, middle = (min + max) / 2;
    const range = [Math.max(middle - half, this.whole[0]), Math.min(middle + half, this.whole[1])];
    this.zoom(range);
  }

  move(part) {
    const { min, max } = this.uplot.scales.x, by = Math.min(Math.max((max - min) * part, this.whole[0] - min), this.whole[1] - max);
    this.zoom([min + by, max + by]);
  }

  // toNext shows the next event behind what is shown; the first one if all is shown, or none is left.
  toNext() {
    const { min, max } = this.uplot.scales.x, all = min <= this.whole[0] && max >= this.whole[1];
    const is = (p) => !ordinary.has(p.kind), later = all ? -1 : this.points.findIndex((p) => is(p) && p.time_ns > max);
    const at = later >= 0 ? later : this.points.findIndex(is), last = this.points.length - 1;
    const from = this.points[Math.max(at - before, 0)].time_ns, to = this.points[Math.min(at - before + readable, last)].time_ns;
    const margin = Math.max(to - from, 1000) / 50;
    this.zoom([from - margin, to + margin]);
  }

  // point says what is nearest to the pointer.
  point(e) {
    if (!this.uplot) return;
    const u = this.uplot, box = u.over.getBoundingClientRect(), x = e.clientX - box.left, y = e.clientY - box.top, { min, max } = u.scales.x;
    let best = null, least = near * near;
    for (const p of this.points) {
      if (p.time_ns < min || p.time_ns > max || this.hidden.has(p.kind)) continue;
      const dx = u.valToPos(p.time_ns, "x") - x, low = u.valToPos(p.psn, "y"), high = u.valToPos(p.psn + p.psns - 1, "y");
      const dy = p.kind === "cnp" ? Math.min(y, 0) : y > low ? y - low : y < high ? high - y : 0;
      const d = dx * dx + dy * dy - (ordinary.has(p.kind) ? 0 : 1); // an event before what is below it
      if (d < least) [best, least] = [p, d];
    }
    this.say(best);
  }

  say(p) {
    setText(this.said, p ? `${exactTime(p.time_ns)}: ${named(p)}` : `Drag to zoom, double-click for all. ${this.note ?? ""}`);
  }
}
