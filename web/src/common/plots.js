// Plots: lines over time, drawn by uPlot, with a table of the same figures behind each.
import uPlot from "uplot";
import { el, setText } from "./dom.js";
import { colour, onTheme, seriesStyle } from "./theme.js";
import * as format from "./format.js";

const whole = Array.from({ length: 46 }, (_, i) => [1, 2, 5][i % 3] * 10 ** Math.floor(i / 3)); // distances of ticks of counts
const tableRows = 40; // of a data table: evenly spaced samples

// Plot shows series over time in an element.
//   title    what is shown; the heading of plot and table
//   series   [{label, colour?, dash?, width?, points?, hidden?, unlisted?}]: colour is a name of theme.js; the legend leaves out what is unlisted
//   of       what it belongs to, where several plots have one title: for screen readers
//   value    formats a value (format.bytes, format.rate, format.count)
//   time     formats a time; default: format.time, of nanoseconds
//   height   CSS pixels
//   sync     plots with the same name have one cursor
//   range    [min, max] of the values or a function of (min, max); default: from 0
// update(data, xRange, highest) takes uPlot's columns: [times, values of the first series, ...]; null is a gap. highest is the least upper end of the values' axis.
export class Plot {
  constructor(host, options) {
    this.options = { time: format.time, value: format.count, height: 160, ...options };
    this.data = [[], ...this.options.series.map(() => [])];
    this.body = el("div", { class: "plot-body", "aria-hidden": "true" });
    this.legend = el("ul", { class: "legend" });
    this.rows = el("tbody");
    this.table = el("details", { class: "plot-table", ontoggle: () => this.fillTable() },
      el("summary", {}, "Figures"),
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": [this.options.title, this.options.of, "figures"].filter(Boolean).join(", ") },
        el("table", {}, el("caption", { class: "hidden" }, this.options.title), (this.head = el("thead")), this.rows)));
    host.classList.add("plot");
    host.append(el("h3", {}, this.options.title), this.legend, this.body, this.table);
    this.host = host;
    this.watch = new ResizeObserver(() => this.resize());
    this.watch.observe(this.body);
    onTheme(() => this.build());
    this.build();
  }

  // setSeries replaces the series; the data is empty until the next update.
  setSeries(series) {
    this.options.series = series;
    this.data = [[], ...series.map(() => [])];
    this.build();
  }

  build() {
    this.uplot?.destroy();
    const em = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16; // larger on very wide screens
    const { series, value, time, sync, range, band } = this.options, height = Math.round(this.options.height * em);
    this.height = height;
    const axis = { stroke: colour("muted"), grid: { stroke: colour("grid"), width: 1 }, ticks: { show: false }, font: `${Math.round(12 * em)}px system-ui, sans-serif` };
    const styles = series.map((s, i) => ({ ...seriesStyle(i), ...s }));
    this.body.style.height = height + "px";
    this.uplot = new uPlot({
      width: Math.max(this.body.clientWidth, 100), height, padding: [8, 26, 0, 0],
      legend: { show: false }, cursor: { y: false, points: { size: 5 }, drag: { x: false, y: false }, ...(sync && { sync: { key: sync } }) },
      scales: { x: { time: false, range: (u, min, max) => this.xRange ?? [min ?? 0, max > min ? max : (min ?? 0) + 1] },
        y: { range: range ?? ((u, min, max) => [0, Math.max(max, this.highest ?? 0) * 1.05 || 1]) } },
      axes: [{ ...axis, size: 24 * em, space: 72, values: (u, all) => all.map(time) }, { ...axis, size: 76 * em, values: (u, all) => all.map(value), ...(value === format.count && { incrs: whole }) }],
      series: [{}, ...styles.map((s) => ({ label: s.label, stroke: () => colour(s.colour), dash: s.dash, width: s.width ?? 1.5, show: !s.hidden,
        points: s.points ?? { show: false }, paths: s.paths, fill: s.fill && (() => colour(s.fill)) }))],
      hooks: { setCursor: [() => this.showCursor()], draw: this.options.draw ? [(u) => this.options.draw(u, this.data)] : [] },
      bands: band,
    }, this.data, this.body);
    this.values = styles.map((s) => (s.unlisted ? null : el("span", { class: "value" })));
    const unlisted = styles.filter((s) => s.unlisted);
    this.legend.replaceChildren(...styles.flatMap((s, i) => (s.unlisted ? [] : [el("li", {}, swatch(s), el("span", {}, s.label), this.values[i])])),
      ...(unlisted.length ? [el("li", {}, `${unlisted[0].label} to ${unlisted.at(-1).label}: a line each`)] : []));
    this.head.replaceChildren(el("tr", {}, el("th", { scope: "col" }, "Time"), ...series.map((s) => el("th", { scope: "col" }, s.label))));
    this.showCursor();
  }

  resize() {
    const width = this.body.clientWidth;
    if (width > 0 && width !== this.uplot.width) this.uplot.setSize({ width, height: this.height });
  }

  update(data, xRange, highest) {
    this.data = data;
    this.xRange = xRange;
    this.highest = highest;
    this.uplot.setData(data);
    this.showCursor();
    if (this.table.open) this.fillTable();
  }

  // showCursor writes into the legend the values below the cursor, or the latest ones.
  showCursor() {
    const at = this.uplot?.cursor?.idx ?? this.data[0].length - 1;
    this.values?.forEach((e, i) => e && setText(e, this.options.value(this.data[i + 1]?.[at])));
  }

  fillTable() {
    if (!this.table.open) return;
    const now = performance.now();
    if (now - (this.filled ?? -Infinity) < 1000) return;
    this.filled = now;
    const [times, ...columns] = this.data;
    const step = Math.max(1, Math.ceil(times.length / tableRows)), rows = [];
    for (let i = 0; i < times.length; i += step) {
      rows.push(el("tr", {}, el("th", { scope: "row" }, this.options.time(times[i])), ...columns.map((c) => el("td", {}, this.options.value(c[i])))));
    }
    this.rows.replaceChildren(...rows);
  }

  destroy() {
    this.watch.disconnect();
    this.uplot.destroy();
  }
}

// swatch is a short piece of a series' line.
const swatch = (s) => el("svg:svg", { class: "swatch", viewBox: "0 0 22 8", width: 22, height: 8, "aria-hidden": "true" },
  el("svg:line", { x1: 0, y1: 4, x2: 22, y2: 4, style: `stroke:var(--${s.colour})`, "stroke-width": 2.5, "stroke-dasharray": s.dash.join(" ") }));
