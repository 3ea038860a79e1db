// Tables of bounded length.
import { el } from "./dom.js";
import * as format from "./format.js";

export const scope = (f) => [f.tunnel ? f.tunnel + ":" + (f.tunnel_id ?? 0) : null, ...(f.vlan ?? [])].filter((x) => x != null).join(".") || "–";
export const orDash = (v) => (v == null || v === "" ? "–" : String(v));
export const clock = (ms) => new Date(ms).toLocaleTimeString([], { hour12: false });
export const moment = (text) => new Date(text).toLocaleString([], { hour12: false });
export const counts = (by) => Object.entries(by ?? {}).filter(([, n]) => n).map(([k, n]) => k + ": " + format.count(n)).join(", ") || "–";

// latestFirst sorts what has a time and a number.
export const latestFirst = (all) => all.toSorted((a, b) => Date.parse(b.time) - Date.parse(a.time) || b.number - a.number);

// least is the range of a plot's times, s: at least the last 30.
export const least = (times) => (times.length ? [Math.min(times[0], times.at(-1) - 30), times.at(-1)] : undefined);

// host is a link to a host's page.
export const host = (address) => el("a", { href: "#host=" + encodeURIComponent(address) }, address);

// Table shows rows in columns: [{title, cell: row => text or node, left: alignment}].
export class Table {
  constructor(title, columns, options = {}) {
    this.columns = columns;
    this.options = options;
    this.body = el("tbody");
    this.empty = el("p", { class: "muted empty" }, options.empty ?? "None.");
    this.scroll = el("div", { class: "scroll tall", tabindex: "0", role: "region", "aria-label": title },
      el("table", {}, el("caption", { class: "hidden" }, title),
        el("thead", {}, el("tr", {}, ...columns.map((c) => el("th", { scope: "col", class: c.left ? "left" : false }, c.title)))), this.body));
    this.node = el("div", { class: "table" }, this.scroll, this.empty);
    this.show([]);
  }

  show(rows) {
    this.scroll.hidden = rows.length === 0;
    this.empty.hidden = rows.length > 0;
    if (this.body.contains(document.activeElement)) { // don't take the focus away
      if (this.body.rows.length === rows.length) rows.forEach((row, i) => this.refresh(this.body.rows[i], row));
      return;
    }
    this.body.replaceChildren(...rows.map((row) => this.row(row)));
  }

  row(row) {
    const cells = this.columns.map((c, i) => el(i === 0 ? "th" : "td", { scope: i === 0 ? "row" : false, class: c.left || i === 0 ? "left" : false }, c.cell(row)));
    return el("tr", { class: this.options.mark?.(row) ? "marked" : false }, ...cells);
  }

  refresh(tr, row) {
    this.columns.forEach((c, i) => {
      if (!tr.cells[i].contains(document.activeElement)) tr.cells[i].replaceChildren(c.cell(row));
    });
  }
}

// Pager shows a long list page by page: load(offset, limit) returns {rows, more}.
export class Pager {
  constructor(table, load, size = 50) {
    Object.assign(this, { table, load, size, offset: 0 });
    this.back = el("button", { type: "button", onclick: () => this.go(this.offset - size) }, "Previous");
    this.next = el("button", { type: "button", onclick: () => this.go(this.offset + size) }, "Next");
    this.where = el("span", { class: "muted", role: "status" });
    this.node = el("div", {}, table.node, el("div", { class: "pager" }, this.back, this.next, this.where));
    this.back.disabled = this.next.disabled = true;
  }

  async go(offset = this.offset) {
    const turn = (this.turn = (this.turn ?? 0) + 1);
    offset = Math.max(0, offset);
    try {
      const { rows, more } = await this.load(offset, this.size);
      if (turn !== this.turn) return;
      this.offset = offset;
      this.table.show(rows);
      this.back.disabled = offset === 0;
      this.next.disabled = !more;
      this.where.textContent = rows.length ? `${offset + 1} to ${offset + rows.length}` : "";
    } catch (e) {
      if (turn === this.turn) this.where.textContent = e.message;
    }
  }
}
