// The path as a picture: hosts, fabric, gateway, WAN with its bits, receivers; queues fill, and notifications travel as dots. It is drawn on a canvas; what
// it shows can be read and clicked as text beside it.
import { colour, onTheme, seriesStyle, reducedMotion } from "../common/theme.js";
import * as format from "../common/format.js";

const height = 230;
const top = 26, bottom = 22; // of the boxes
const dotRadius = 5;
const shortest = 0.45; // seconds on the screen that a dot takes for a link, however short the link
const mostDots = 400;
const weights = { hosts: 1.1, fabric: 0.75, gateway: 0.85, wan: 2.3 };

export class Picture {
  // clicked is called with {notice} or {host} for what the user clicks.
  constructor(host, clicked) {
    this.canvas = document.createElement("canvas");
    this.canvas.className = "picture";
    this.canvas.setAttribute("aria-hidden", "true");
    host.append(this.canvas);
    this.host = host;
    this.dots = [];
    this.canvas.addEventListener("click", (e) => {
      const hit = this.at(e.offsetX, e.offsetY);
      if (hit) clicked(hit);
    });
    this.canvas.addEventListener("mousemove", (e) => {
      const hit = this.at(e.offsetX, e.offsetY);
      this.canvas.style.cursor = hit ? "pointer" : "";
      this.canvas.title = !hit ? "" : hit.notice ? `${hit.notice.kind}: decode it` : `host ${hit.host}: why was it notified?`;
    });
    this.watch = new ResizeObserver(() => this.resize());
    this.watch.observe(host);
    onTheme(() => this.draw(this.now, this.speed));
  }

  // start shows a new run: setup is the engine's, pane 0 or 1.
  start(setup, pane) {
    this.setup = setup;
    this.queues = setup.gateways[pane];
    this.dots = [];
    this.frame = null;
    this.rates = new Map();
    this.resize();
  }

  resize() {
    const width = this.host.clientWidth, ratio = devicePixelRatio || 1;
    if (!width) return;
    const scale = Math.max(1, Math.min(2, width / 900)); // larger on very wide screens
    this.height = Math.round(height * scale);
    this.scale = scale;
    this.width = width;
    this.canvas.style.height = this.height + "px";
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.ratio = ratio;
    if (this.setup) this.layout();
    this.draw(this.now, this.speed);
  }

  // layout gives each node its place, in columns from the first data centre to the last.
  layout() {
    const { nodes, sites, spans } = this.setup;
    const columns = [];
    const add = (kind, site, extra) => columns.push({ kind, site, ...extra });
    for (let site = 0; site < sites; site++) {
      const of = (kind) => nodes.some((n) => n.site === site && n.kind === kind);
      const out = spans.filter((s) => nodes[s.a].site === site), into = spans.filter((s) => nodes[s.b].site === site);
      const outGateways = out.map((s) => s.a).filter((n) => nodes[n].kind === "gateway");
      const inGateways = into.map((s) => s.b).filter((n) => nodes[n].kind === "gateway" && !outGateways.includes(n));
      if (site === 0 && of("host")) add("hosts", site);
      inGateways.forEach((node) => add("gateway", site, { node }));
      if (of("switch")) add("fabric", site);
      outGateways.forEach((node) => add("gateway", site, { node }));
      if (site > 0 && of("host")) add("hosts", site);
      if (site + 1 < sites) add("wan", site, { span: spans.indexOf(out[0]) });
    }
    const gap = 8 * this.scale, sum = columns.reduce((n, c) => n + weights[c.kind], 0);
    const unit = (this.width - gap * (columns.length + 1)) / sum;
    let x = gap;
    for (const c of columns) {
      c.x = x;
      c.w = weights[c.kind] * unit;
      c.y = top * this.scale;
      c.h = this.height - (top + bottom) * this.scale;
      x += c.w + gap;
    }
    this.columns = columns;
    this.gap = gap;
    this.places = nodes.map((n, i) => {
      const c = columns.find((c) => (n.kind === "gateway" ? c.node === i : c.site === n.site && c.kind === (n.kind === "host" ? "hosts" : "fabric"))) ?? columns[0];
      return { column: c, x: c.x + c.w / 2, y: c.y + c.h / 2 };
    });
    for (const c of columns.filter((c) => c.kind === "hosts")) this.placeHosts(c);
  }

  placeHosts(c) {
    const all = this.setup.nodes.map((n, i) => i).filter((i) => this.setup.nodes[i].kind === "host" && this.setup.nodes[i].site === c.site);
    const across = Math.ceil(Math.sqrt((all.length * c.w) / c.h / 2)) || 1, rows = Math.ceil(all.length / across);
    const w = c.w / across, h = Math.min(c.h / rows, 44 * this.scale), from = c.y + (c.h - rows * h) / 2;
    all.forEach((i, n) => {
      const x = c.x + (n % across) * w, y = from + Math.floor(n / across) * h;
      Object.assign(this.places[i], { box: { x: x + 1, y: y + 1, w: w - 2, h: h - 2 }, x: x + w / 2, y: y + h / 2 });
    });
  }

  // show takes a frame of the engine, and the latest rate and notifications of each sender: {rate, asked, line}.
  show(frame, senders) {
    this.frame = frame;
    this.senders = senders;
    this.dots.push(...frame.notices);
    if (this.dots.length > mostDots) this.dots.splice(0, this.dots.length - mostDots);
  }

  // draw draws the state at a virtual time; speed is the virtual time in a second on the screen, ns.
  draw(now, speed) {
    if (!this.setup || !this.columns || !this.frame) return;
    this.now = now;
    this.speed = speed;
    const g = this.canvas.getContext("2d");
    g.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    g.clearRect(0, 0, this.width, this.height);
    g.lineWidth = 1;
    for (const c of this.columns) this["draw_" + c.kind](g, c);
    this.drawDots(g, now, speed);
  }

  // fits reports whether a text, with some space at both sides, is no wider than w.
  fits(g, text, w) {
    g.font = `${Math.round(11 * this.scale)}px system-ui, sans-serif`;
    return g.measureText(text).width < w - 12;
  }

  text(g, text, x, y, { name = "muted", align = "center", size = 11, bold } = {}) {
    g.font = `${bold ? "600 " : ""}${Math.round(size * this.scale)}px system-ui, sans-serif`;
    g.fillStyle = colour(name);
    g.textAlign = align;
    g.fillText(text, x, y);
  }

  box(g, x, y, w, h) {
    g.beginPath();
    g.roundRect(x, y, w, h, 4);
    g.fillStyle = colour("panel");
    g.fill();
    g.strokeStyle = colour("line");
    g.stroke();
  }

  draw_hosts(g, c) {
    const { nodes, senders, receivers } = this.setup;
    const sends = nodes.some((n) => n.kind === "host" && n.site === c.site && senders.includes(n.host));
    const receives = nodes.some((n) => n.kind === "host" && n.site === c.site && receivers.includes(n.host));
    this.text(g, sends && receives ? "hosts" : sends ? "senders" : "receivers", c.x + c.w / 2, c.y - 8 * this.scale);
    nodes.forEach((n, i) => {
      const b = this.places[i].box;
      if (!b || this.places[i].column !== c) return;
      this.box(g, b.x, b.y, b.w, b.h);
      const at = senders.indexOf(n.host), s = at >= 0 && this.senders[at];
      if (!s) return;
      const part = Math.min(1, s.rate / s.line);
      g.fillStyle = colour(seriesStyle(at).colour);
      g.globalAlpha = 0.75;
      g.fillRect(b.x + 1, b.y + 1, (b.w - 2) * part, b.h - 2);
      g.globalAlpha = 1;
      if (b.h > 12 * this.scale && b.w > 14 * this.scale) this.text(g, String(n.host), b.x + b.w / 2, b.y + b.h / 2 + 4 * this.scale, { name: "text", bold: true });
    });
  }

  draw_fabric(g, c) {
    if (this.fits(g, "fabric", c.w + 10)) this.text(g, "fabric", c.x + c.w / 2, c.y - 8 * this.scale);
    this.box(g, c.x, c.y, c.w, c.h);
    const bytes = this.frame.fabric[c.site];
    this.fill(g, c, bytes, 32e6, "s4");
    this.text(g, bytes ? format.bytes(bytes) : "", c.x + c.w / 2, c.y + c.h + 14 * this.scale);
  }

  draw_gateway(g, c) {
    this.text(g, "gateway", c.x + c.w / 2, c.y - 8 * this.scale, { name: "text", bold: true });
    this.box(g, c.x, c.y, c.w, c.h);
    const i = this.queues.findIndex((q) => q.node === c.node);
    if (i < 0) return;
    const q = this.queues[i], depth = this.frame.queues[i];
    this.fill(g, c, depth, q.capacity, depth > 0.9 * q.capacity ? "bad" : "s0");
    this.level(g, c, q.reference || q.k_min, q.capacity);
    this.text(g, format.bytes(depth + this.frame.paced[i]), c.x + c.w / 2, c.y + c.h + 14 * this.scale, { name: "text" });
  }

  // part is how full a queue is drawn: the square root, so that a short queue is visible beside a full one.
  part = (bytes, capacity) => Math.sqrt(Math.min(1, bytes / capacity));

  fill(g, c, bytes, capacity, name) {
    const h = (c.h - 2) * this.part(bytes, capacity);
    g.fillStyle = colour(name);
    g.fillRect(c.x + 1, c.y + c.h - 1 - h, c.w - 2, h);
  }

  level(g, c, bytes, capacity) {
    if (!bytes) return;
    const y = c.y + c.h - 1 - (c.h - 2) * this.part(bytes, capacity);
    g.strokeStyle = colour("text");
    g.setLineDash([4, 3]);
    g.beginPath();
    g.moveTo(c.x, y);
    g.lineTo(c.x + c.w, y);
    g.stroke();
    g.setLineDash([]);
  }

  // draw_wan draws bits in flight: the upper lane to the receivers, the lower one back.
  draw_wan(g, c) {
    const s = this.setup.spans[c.span];
    const names = [`WAN, ${format.rate(s.rate)}, ${format.time(2 * s.delay)} there and back`, `WAN, ${format.rate(s.rate)}`, "WAN"];
    this.text(g, names.find((n) => this.fits(g, n, c.w)) ?? "", c.x + c.w / 2, c.y - 8 * this.scale);
    const full = (s.rate * s.delay) / 8e9, mid = c.y + c.h / 2;
    this.lane(g, c, mid - 26 * this.scale, this.frame.flying[c.span][0] / full, 1, s.delay);
    this.lane(g, c, mid + 26 * this.scale, this.frame.flying[c.span][1] / full, -1, s.delay);
    const delays = [format.time(s.delay) + " one way", format.time(s.delay)]; // the depths beside it are wider than their columns
    this.text(g, delays.find((d) => this.fits(g, d, c.w - 2 * this.gap)) ?? "", c.x + c.w / 2, c.y + c.h + 14 * this.scale);
  }

  lane(g, c, y, part, direction, delay) {
    const w = 9 * this.scale, h = 5 * this.scale, slots = Math.max(1, Math.floor((c.w + 2 * this.gap) / (w + 3)));
    g.strokeStyle = colour("grid");
    g.strokeRect(c.x - this.gap, y - h - 2, c.w + 2 * this.gap, 2 * h + 4);
    const step = (c.w + 2 * this.gap) / slots, moved = reducedMotion() ? 0 : ((this.now / delay) * slots) % 1;
    g.fillStyle = colour("s2");
    g.globalAlpha = Math.max(0.15, Math.min(1, part));
    if (part > 0.001) {
      for (let i = 0; i < slots; i++) {
        const at = direction > 0 ? i + moved : slots - 1 - i - moved;
        const x = c.x - this.gap + ((at + slots) % slots) * step;
        g.fillRect(x + 1, y - h, Math.min(w, c.x + c.w + this.gap - x - 1), 2 * h);
      }
    }
    g.globalAlpha = 1;
  }

  // progress of a dot along its link, 0 to 1; more: it has arrived.
  progress(d, now, speed) {
    const time = d.arrives < 0 ? shortest * speed : Math.max(d.arrives - d.sent, shortest * speed);
    return (now - d.begin) / time;
  }

  placeOf(d, p) {
    const a = this.places[d.from], b = this.places[d.to];
    const wan = Math.abs(this.setup.nodes[d.from].site - this.setup.nodes[d.to].site) > 0;
    const lane = wan ? (b.x < a.x ? 26 : -26) * this.scale : 0;
    return { x: a.x + (b.x - a.x) * p, y: wan ? a.column.y + a.column.h / 2 + lane : a.y + (b.y - a.y) * p };
  }

  drawDots(g, now, speed) {
    const later = new Map(); // the time at which a dot has left the link before, so that it isn't on two at once
    this.dots = this.dots.filter((d) => {
      d.begin ??= Math.max(d.sent, later.get(d.id) ?? 0);
      const p = this.progress(d, now, speed);
      later.set(d.id, d.begin + Math.max(d.arrives - d.sent, shortest * speed));
      if (p > 1) return false;
      d.place = p < 0 || (d.arrives < 0 && p > 0.5) ? null : this.placeOf(d, p);
      if (d.place) this.dot(g, d);
      return true;
    });
  }

  dot(g, d) {
    // A gateway's notification is round, a receiver's CNP a diamond.
    const r = dotRadius * this.scale, { x, y } = d.place;
    g.beginPath();
    if (!d.built) {
      g.moveTo(x, y - r * 1.3);
      g.lineTo(x + r * 1.3, y);
      g.lineTo(x, y + r * 1.3);
      g.lineTo(x - r * 1.3, y);
      g.closePath();
    } else g.arc(x, y, r, 0, 7);
    g.fillStyle = colour(!d.built ? "s3" : "s1");
    g.fill();
    g.strokeStyle = colour("panel");
    g.lineWidth = 1.5;
    g.stroke();
    g.lineWidth = 1;
  }

  // at is what is drawn at a place: {notice} or {host}.
  at(x, y) {
    for (const d of this.dots.toReversed()) {
      if (d.place && Math.hypot(d.place.x - x, d.place.y - y) < dotRadius * this.scale + 6) return { notice: d };
    }
    const i = this.places?.findIndex(({ box: b }) => b && x >= b.x && x < b.x + b.w && y >= b.y && y < b.y + b.h) ?? -1;
    if (i >= 0 && this.setup.senders.includes(this.setup.nodes[i].host)) return { host: this.setup.nodes[i].host };
    return null;
  }
}
