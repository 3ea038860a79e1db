// Plays a recording: its events are applied at their times, which count from its begin.
import { el } from "../common/dom.js";
import * as format from "../common/format.js";

const speeds = [0.001, 0.01, 0.1, 1, 10, 100];

export class Player {
  // restart() is called when the time goes back, apply(event) for each event.
  constructor(events, { restart, apply }) {
    Object.assign(this, { events, restart, apply, next: 0, at: 0, length: events.at(-1)?.at_ms ?? 0, running: false });
    this.button = el("button", { type: "button", class: "primary", onclick: () => (this.running ? this.pause() : this.play()) }, "Play");
    this.slider = el("input", { type: "range", min: 0, max: this.length || 1, step: "any", value: 0, oninput: () => this.seek(Number(this.slider.value)) });
    this.speed = el("select", {}, ...speeds.map((s) => el("option", { value: s }, s + "×")));
    this.where = el("span", { class: "muted" });
    this.node = el("div", { class: "panel bar player", role: "group", "aria-label": "Player" }, this.button, el("label", { class: "wide" }, "Time", this.slider), el("label", {}, "Speed", this.speed), this.where);
    // As fast as the whole takes about 20 s.
    this.speed.value = String(speeds.findLast((s) => this.length / s >= 20000) ?? speeds[0]);
    this.node.hidden = this.length === 0;
    this.seek(events.find((e) => e.kind === "counters")?.at_ms ?? 0); // the start, as soon as there is something to see
  }

  seek(to) {
    if (to < this.at) {
      this.restart();
      this.next = 0;
    }
    this.at = Math.min(to, this.length);
    while (this.next < this.events.length && this.events[this.next].at_ms <= this.at) this.apply(this.events[this.next++]);
    this.slider.value = String(this.at);
    this.slider.setAttribute("aria-valuetext", format.time(this.at * 1e6));
    this.where.textContent = `${format.time(this.at * 1e6)} of ${format.time(this.length * 1e6)}`;
  }

  play() {
    this.running = true;
    this.button.textContent = "Pause";
    if (this.at >= this.length) this.seek(0);
    let before = performance.now();
    const step = (now) => {
      if (!this.running) return;
      this.seek(this.at + (now - before) * Number(this.speed.value));
      before = now;
      if (this.at >= this.length) this.pause();
      else requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  pause() {
    this.running = false;
    this.button.textContent = "Play";
  }
}
