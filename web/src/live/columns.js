// The columns of tables, as the server describes them: Go package control/columns. A column is a member of a row, and the form in which it is written.
import { el } from "../common/dom.js";
import * as format from "../common/format.js";
import { clock, counts, host, moment, orDash, scope, Table } from "../common/table.js";

const yes = (v) => el("span", { class: v ? "good" : "bad" }, v ? "yes" : "no");
const text = (v) => (typeof v === "boolean" ? yes(v) : orDash(v));
const why = (v) => el("span", { class: "why" }, orDash(Array.isArray(v) ? v.join(", ") : v));

// The forms of package columns: (value, row) => text or node.
const forms = {
  "": text,
  long: why,
  count: format.count,
  id: text,
  bytes: (v) => format.bytes(v ?? 0),
  rate: format.rate,
  duration: format.time,
  ms: (v) => (v ? format.time(v * 1e6) : "–"),
  us: (v) => (v ? format.time(v * 1e3) : "–"),
  host,
  qp: (v, row) => (v != null ? v : row.candidate_qp != null ? row.candidate_qp + "?" : "–"),
  place: (_, row) => scope(row),
  counts,
  reacts: (v) => (v ? el("span", { class: "bad" }, "no") : "–"),
  clock: (v) => clock(Date.parse(v)) + "." + String(new Date(v).getUTCMilliseconds()).padStart(3, "0"),
  date: moment,
  state: (v) => el("span", { class: v === "active" ? "good" : ["silent", "unheard", "refused"].includes(v) ? "bad" : false }, v),
  hash: (v) => el("code", {}, v.slice(0, 12)),
  asks: (v, row) => (v ? v + (row.parameter ? " " + row.parameter : "") : "–"),
  outcome: (v, row) => (row.reason ? `${v}: ${row.reason}` : v),
  queue: (_, row) => row.port + "/" + row.class,
  slowed: (v, row) => (v == null ? "–" : row.at_fair_rate ? "at its fair rate" : yes(v)),
};
const right = new Set(["count", "id", "bytes", "rate", "duration", "ms", "us", "qp", "clock"]);

let tables = {};

// describe takes what the server says of all tables.
export const describe = (all) => (tables = all);

// table shows rows of a kind. more are other columns, behind those.
export const table = (kind, title, empty, more = []) => new Table(title, [
  ...tables[kind].map((c) => ({ title: c.title, left: !right.has(c.as), cell: (row) => forms[c.as](row[c.member], row) })), ...more], { empty });
