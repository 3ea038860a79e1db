// What the page knows of the gateway. Everything is bounded: samples, notifications and episodes are dropped from the oldest on.
export const maxSamples = 1800; // of a series
const slack = 200; // samples are dropped so many at a time
const maxNotifications = 400;
const maxEpisodes = 256;

// sum is a counter's value: a number, or an object of them by label.
export const sum = (v) => (v == null ? 0 : typeof v === "object" ? Object.values(v).reduce((a, b) => a + b, 0) : v);

// Series are columns of samples, the first one their times.
export class Series {
  constructor(columns) {
    this.columns = Array.from({ length: columns + 1 }, () => []);
  }
  push(time, values) {
    this.columns[0].push(time);
    for (let i = 1; i < this.columns.length; i++) this.columns[i].push(values[i - 1] ?? null);
    if (this.columns[0].length >= maxSamples + slack) for (const c of this.columns) c.splice(0, slack);
  }
  clear() {
    for (const c of this.columns) c.length = 0;
  }
}

// Counters that become rates: by the name on the page.
const rates = {
  rx: ["received_bytes_total", 8], tx: ["forwarded_bytes_total", 8], dropped: ["dropped_packets_total", 1], marked: ["queue_ecn_marked_packets_total", 1],
  notified: ["notifications_sent_total", 1], observed: ["notifications_observed_total", 1], suppressed: ["notifications_suppressed_total", 1],
};

export class State {
  constructor() {
    this.listeners = new Set();
    this.reset();
  }

  // reset forgets a gateway, but not what was plotted.
  reset() {
    Object.assign(this, { version: null, counters: null, before: null, health: null, mode: null, fleet: null, reloads: [], senders: null, senderCount: 0, outcomes: null, charts: [], missed: 0 });
    this.ports = new Map();
    this.episodes = new Map();
    this.notifications = { sent: [], suppressed: [] };
  }

  // listen calls f(kind) after each event.
  listen(f) {
    this.listeners.add(f);
    return () => this.listeners.delete(f);
  }

  // apply takes an event of a kind, which happened at a time, ms since 1970 or since the recording's begin.
  apply(kind, value, now) {
    switch (kind) {
      case "version":
        if (this.version?.start_time !== value.start_time) this.before = null;
        this.version = value;
        break;
      case "counters": this.count(value, now); break;
      case "notifications": this.add("sent", value.notifications); break;
      case "suppressed": this.add("suppressed", value.notifications); break;
      case "episodes": this.addEpisodes(value.episodes); break;
      case "reloads": this.reloads = value.reloads; break;
      case "missed": this.missed += value; break;
      default: this[kind] = value; // health, mode, fleet, senders, outcomes
    }
    for (const f of this.listeners) f(kind);
  }

  count(value, now) {
    const before = this.before, seconds = before ? (now - before.now) / 1000 : 0;
    for (const p of value.ports) {
      let port = this.ports.get(p.name);
      if (!port) this.ports.set(p.name, (port = { name: p.name, rates: {}, queues: new Series(p.queues.length + 2), flow: new Series(2), events: new Series(4) }));
      const old = before?.ports.get(p.name);
      for (const [name, [counter, factor]] of Object.entries(rates)) {
        const more = sum(p.counters[counter]) - sum(old?.counters[counter]);
        port.rates[name] = old && seconds > 0 && more >= 0 ? (factor * more) / seconds : null;
      }
      port.now = p;
      port.queues.push(now / 1000, [...p.queues.map((q) => q.queue_depth_bytes), p.q_ref_bytes ?? p.k_min_bytes, p.notify_above_bytes ?? p.k_max_bytes]);
      if (!before) continue;
      const r = port.rates;
      port.flow.push(now / 1000, [r.rx, r.tx]);
      port.events.push(now / 1000, [r.notified + r.observed, r.suppressed, r.marked, r.dropped]);
    }
    this.counters = value;
    this.before = { now, ports: new Map(value.ports.map((p) => [p.name, p])) };
  }

  // gap leaves a gap in all plots: the gateway wasn't seen.
  gap(now) {
    for (const port of this.ports.values()) for (const s of [port.queues, port.flow, port.events]) s.push(now / 1000, []);
    this.before = null;
  }

  add(outcome, all) {
    const list = this.notifications[outcome], seen = new Set(list.map(keyOf));
    for (const n of all) if (!seen.has(keyOf(n))) list.push(n);
    if (list.length > maxNotifications) list.splice(0, list.length - maxNotifications);
  }

  addEpisodes(all) {
    for (const e of all) this.episodes.set(e.id, e);
    const ids = [...this.episodes.keys()].sort((a, b) => a - b);
    for (const id of ids.slice(0, Math.max(0, ids.length - maxEpisodes))) this.episodes.delete(id);
  }
}

const keyOf = (n) => n.worker + "/" + n.number + "/" + n.time;
