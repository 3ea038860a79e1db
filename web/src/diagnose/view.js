// The view of a report about RDMA connections (health.Report): what is wrong and what to change, the evidence, tables, and what was not examined.
import "./view.css";
import { el, setText } from "../common/dom.js";
import * as format from "../common/format.js";
import { Table } from "../common/table.js";
import { Sequence } from "./sequence.js";

const mostRows = 200; // of a table
const firstVerdicts = 8; // that are shown at once

const plural = (n, what) => `${format.count(n)} ${what}${n === 1 ? "" : "s"}`;
const sum = (by) => Object.values(by ?? {}).reduce((a, b) => a + b, 0);
const within = (rtt) => (rtt ? format.time(rtt.p50_ns) : "–");
const or0 = (n) => format.count(n ?? 0);
const qp = (end) => (end.qp ? `QP ${end.qp}` : "QP not known");
const ends = (row) => [row.record.ends[row.side.requester], row.record.ends[1 - row.side.requester]];
const nameOf = (row) => {
  const [from, to] = ends(row);
  return `${from.ip} ${qp(from)} → ${to.ip} ${qp(to)}` + (row.record.network ? `, ${row.record.network}` : "");
};

// rowsOf has a row for the requests of each end of each connection, with its number in the report.
// pairsOf lists the pairs of hosts that a verdict is about, if they are several.
const pairsOf = ({ pairs = [], other_pairs: others = 0 }) => pairs.length === 0 ? [] : [
  el("dt", {}, "All, by weight"),
  el("dd", {}, pairs.map((p) => `${p.subject.replaceAll(" -> ", " → ")} (${p.weight})`).join("; ") + (others > 0 ? `; and ${others} more` : "")),
];

const rowsOf = (report) => report.connections.flatMap((record, connection) => record.requests.map((side) => ({ record, connection, side })));

// worst is the row with the most that was sent again, of those about which a verdict is; of all if there is none.
const worst = (rows, verdict) => {
  const hosts = (verdict?.pairs?.[0] ?? verdict)?.subject.split(", ")[0].split(" -> ") ?? [];
  const rank = (row) => {
    const [from, to] = ends(row);
    const about = !verdict || row.record.verdicts.includes(verdict.verdict);
    const same = hosts.length === 2 ? from.ip === hosts[0] && to.ip === hosts[1] : hosts.includes(from.ip);
    return [about ? 1 : 0, same ? 1 : 0, row.record.verdicts.length > 0 ? 1 : 0, row.side.retransmitted.packets, row.side.requests.packets + row.side.responses.packets];
  };
  let best = null, highest = null;
  for (const row of rows) {
    const r = rank(row), i = highest ? r.findIndex((v, n) => v !== highest[n]) : 0;
    if (i >= 0 && (!highest || r[i] > highest[i])) [best, highest] = [row, r];
  }
  return best;
};

// View shows a report in its node.
//   trace(connection, requester, progress)  promises the points of one end's requests
//   recording  what it does meanwhile, if it has to be asked for each time; else the worst connection is shown at once
export class View {
  constructor({ trace, recording }) {
    this.traceOf = trace;
    this.recording = recording;
    this.answer = el("section", { class: "panel answer", "aria-labelledby": "conclusion" });
    this.verdicts = el("ol", { class: "verdicts" });
    this.others = el("button", { type: "button", onclick: () => this.showVerdicts(this.report.verdicts.length) });
    this.sequence = new Sequence();
    this.plotTitle = el("p", { class: "subject" });
    this.plotState = el("p", { class: "muted", role: "status" });
    this.evidence = el("section", { class: "panel evidence", "aria-labelledby": "evidence" }, el("h2", { id: "evidence" }, "Evidence: one connection over time"), this.plotTitle, this.plotState, this.sequence.node,
      el("details", { class: "how" }, el("summary", {}, "How to read it"), el("p", {}, "Time runs to the right. The packets of the connection are numbered (PSN), upwards. A healthy transfer is one line that climbs, and the line of answers follows it at the distance of a round trip."),
        el("p", {}, "A step back in red was sent before: the same numbers once more. A cross is a receiver that misses a packet and asks for it. A dashed box is a packet that never came past here. Triangles at the top are CNPs, which ask the sender to slow down.")));
    this.text = el("input", { type: "search", placeholder: "address, QP, verdict", oninput: () => this.fill() });
    this.only = el("input", { type: "checkbox", onchange: () => this.fill() });
    this.hosts = new Table("Hosts", [
      { title: "Host", cell: (s) => s.name },
      { title: "Connections", cell: (s) => or0(s.connections) },
      { title: "Packets", cell: (s) => or0(s.packets) },
      { title: "Payload", cell: (s) => format.bytes(s.goodput_bytes) },
      { title: "Sent again", cell: (s) => this.loud(s.retransmitted.packets) },
      { title: "Lost before here", cell: (s) => this.loud(s.lost_upstream) },
      { title: "Lost behind", cell: (s) => this.loud(s.lost_downstream) },
      { title: "ACKs lost", cell: (s) => this.loud(s.acks_lost) },
      { title: "NAKs", cell: (s) => this.loud(s.naks) },
      { title: "Not ready (RNR)", cell: (s) => this.loud(s.rnr_naks) },
      { title: "CE", cell: (s) => or0(s.ce_marked) },
      { title: "CNPs", cell: (s) => or0(s.cnps) },
      { title: "Half answered within", cell: (s) => within(s.rtt) },
      { title: "Senders at once", cell: (s) => or0(s.incast) },
    ], { empty: "No host matches." });
    this.connections = new Table("Connections", [
      { title: "From (QP)", cell: (row) => this.endCell(row) },
      { title: "To (QP)", left: true, cell: (row) => `${ends(row)[1].ip} (${ends(row)[1].qp ?? "?"})` },
      { title: "What is wrong", left: true, cell: (row) => el("span", { class: "wrong" }, this.titlesOf(row).join("; ") || "–") },
      { title: "Packets", cell: (row) => or0(row.side.requests.packets + row.side.responses.packets) },
      { title: "Sent again", cell: (row) => this.loud(row.side.retransmitted.packets) },
      { title: "Lost before here", cell: (row) => this.loud(row.side.lost_upstream) },
      { title: "Lost behind", cell: (row) => this.loud(row.side.lost_downstream) },
      { title: "NAKs", cell: (row) => this.loud(sum(row.side.naks)) },
      { title: "RNR", cell: (row) => this.loud(row.side.rnr_naks) },
      { title: "CE", cell: (row) => or0(row.side.ce_marked) },
      { title: "CNPs", cell: (row) => or0(sum(row.record.ends.map((e) => e.cnps ?? 0))) },
      { title: "Half answered within", cell: (row) => within(row.side.read_rtt ?? row.side.rtt) },
      { title: "Network", left: true, cell: (row) => row.record.network ?? "–" },
      { title: "Ended", left: true, cell: (row) => row.record.ended },
    ], { empty: "No connection matches.", mark: (row) => this.plotted && row.connection === this.plotted.connection && row.side.requester === this.plotted.side.requester });
    this.shown = el("p", { class: "muted", role: "status" });
    this.tables = el("section", { class: "panel tables", "aria-labelledby": "where" }, el("h2", { id: "where" }, "Hosts and connections"),
      el("div", { class: "filters" }, el("label", {}, "Show only", this.text), el("label", { class: "check" }, this.only, "with something wrong")),
      el("h3", {}, "Hosts"), this.hosts.node, el("h3", {}, "Connections, by who sends the requests"), this.connections.node, this.shown);
    this.read = el("section", { class: "panel read", "aria-labelledby": "read" });
    this.node = el("div", { class: "report" }, this.answer, this.verdicts, el("p", {}, this.others), this.evidence, this.tables, this.read);
  }

  loud(n) {
    return n ? el("strong", { class: "bad" }, format.count(n)) : "0";
  }

  // titlesOf is what is wrong with a row's connection. Each is one of the report's verdicts.
  titlesOf(row) {
    return this.report.verdicts.filter((v) => row.record.verdicts.includes(v.verdict)).map((v) => v.title);
  }

  endCell(row) {
    const [from] = ends(row), name = `${from.ip} (${from.qp ?? "?"})`;
    return el("button", { type: "button", class: "link", title: "Show it on the plot", onclick: () => this.plot(row, true) }, name);
  }

  // show shows a report. warnings are about the capture itself.
  show(report, warnings = []) {
    this.report = report;
    this.rows = rowsOf(report);
    this.showAnswer();
    this.showVerdicts(firstVerdicts);
    this.showRead(warnings);
    this.tables.hidden = this.rows.length === 0;
    this.fill();
    this.evidence.hidden = this.rows.length === 0;
    if (this.recording) {
      this.sequence.node.hidden = !this.plotted;
      if (!this.plotted) setText(this.plotState, "Choose a connection below, or the button of what is wrong: its packets are recorded from then on.");
      return;
    }
    const row = worst(this.rows, report.verdicts[0]);
    if (row) this.plot(row);
  }

  showAnswer() {
    const { summary: s, conclusion, frames } = this.report, well = conclusion === "Nothing is wrong.";
    const unread = (frames?.unread ?? []).filter((u) => u.rdma).reduce((n, u) => n + u.frames, 0);
    const fact = (name, value, bad) => el("div", {}, el("dt", {}, name), el("dd", { class: bad ? "bad" : false }, value));
    this.answer.replaceChildren(...[
      el("h2", { id: "conclusion", class: "conclusion " + (well ? "good" : this.report.verdicts.length ? "bad" : "") }, conclusion),
      unread > 0 ? el("p", {}, el("a", { href: "#read" }, `Why ${plural(unread, "RDMA frame")} could not be examined, and what to do`)) : null,
      s.packets === 0 ? null : el("dl", { class: "facts" },
        fact("Seen", `${plural(s.connections, "connection")} between ${plural(s.hosts, "host")}, ${plural(s.packets, "packet")} in ${format.time(s.duration_ns)}`),
        fact("Sent again", plural(s.retransmitted.packets, "packet"), s.retransmitted.packets > 0),
        fact("Lost", `${or0(s.lost_upstream)} before here, ${or0(s.lost_downstream)} behind here`, s.lost_upstream + s.lost_downstream > 0),
        fact("Refused", `${plural(s.naks, "NAK")}, ${plural(s.rnr_naks, "RNR NAK")}`, s.naks + s.rnr_naks > 0),
        fact("Congestion", `${plural(s.ce_marked, "CE mark")}, ${plural(s.cnps, "CNP")}`),
        fact("Half answered within", within(s.rtt)))].filter(Boolean));
  }

  showVerdicts(most) {
    const all = this.report.verdicts;
    this.verdicts.replaceChildren(...all.slice(0, most).map((v, i) => this.verdict(v, i + 1)));
    this.verdicts.hidden = all.length === 0;
    this.others.parentNode.hidden = all.length <= most;
    setText(this.others, `Show the other ${all.length - most}`);
  }

  verdict(v, n) {
    const more = v.connections > 1 ? ` (${plural(v.connections, "connection")}; the figures are of the worst one)` : "";
    const row = worst(this.rows, v), about = row?.record.verdicts.includes(v.verdict);
    const said = el("p", { class: "muted said", role: "status" });
    const commands = v.commands ?? [];
    return el("li", { class: "panel verdict" },
      el("h3", {}, el("span", { class: "number" }, String(n)), v.title),
      el("p", { class: "subject" }, v.subject.replaceAll(" -> ", " → ") + more, " ", el("code", {}, v.verdict)),
      el("p", {}, v.meaning),
      el("dl", { class: "why-what" }, el("dt", {}, "What shows it"), el("dd", { class: "shows" }, v.evidence), ...pairsOf(v), el("dt", {}, "What to change"), el("dd", { class: "change" }, v.advice)),
      commands.length > 0 ? el("pre", { class: "commands" }, commands.join("\n")) : null,
      el("p", { class: "row" },
        commands.length > 0 ? el("button", { type: "button", class: "primary", onclick: () => this.copy(commands.join("\n") + "\n", said) }, "Copy the commands to change") : null,
        about ? el("button", { type: "button", onclick: () => this.plot(row, true) }, "Show it on the plot") : null, said));
  }

  async copy(text, said) {
    try {
      await navigator.clipboard.writeText(text);
      setText(said, "Copied.");
    } catch {
      setText(said, "The browser doesn't let this page write to the clipboard: select the lines above.");
    }
  }

  // plot shows a row's requests on the plot; scroll moves the page there.
  async plot(row, scroll) {
    this.plotted = row;
    setText(this.plotTitle, nameOf(row));
    const reading = this.recording ?? "Reading the capture for this connection";
    setText(this.plotState, reading + "…");
    this.sequence.node.classList.add("stale");
    if (scroll) this.evidence.scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
    this.fill();
    try {
      const trace = await this.traceOf(row.connection, row.side.requester, ({ read, size }) => row === this.plotted && setText(this.plotState, `${reading}: ${format.percent(read / size)}`));
      if (row !== this.plotted) return;
      setText(this.plotState, row.record.verdicts.length ? this.titlesOf(row).join("; ") + "." : "Nothing wrong was found in this connection.");
      this.sequence.node.hidden = trace.points.length === 0;
      if (trace.points.length === 0) return setText(this.plotState, "No packet of it was recorded: none has passed, or there is too much traffic to inspect all of it. Choose it again to try again.");
      this.sequence.node.classList.remove("stale");
      this.sequence.show(trace);
    } catch (error) {
      if (row === this.plotted) setText(this.plotState, `The plot can't be drawn: ${error.message}`);
    }
  }

  // fill fills the tables with what the filters leave.
  fill() {
    const text = this.text.value.trim().toLowerCase(), only = this.only.checked;
    const fits = (row) => !text || [nameOf(row), row.record.ended, ...row.record.verdicts, ...this.titlesOf(row)].some((t) => t.toLowerCase().includes(text));
    const rows = this.rows.filter((row) => (!only || row.record.verdicts.length > 0) && fits(row));
    const hosts = new Set(rows.flatMap((row) => row.record.ends.map((e) => e.ip)));
    const listed = this.report.hosts.filter((h) => (!text && !only) || hosts.has(h.name));
    this.hosts.show(listed.slice(0, mostRows));
    this.connections.show(rows.slice(0, mostRows));
    const left = [[listed.length, "hosts"], [rows.length, "rows of connections"]].filter(([n]) => n > mostRows);
    setText(this.shown, left.length ? `Shown are ${left.map(([n, what]) => `${mostRows} of ${format.count(n)} ${what}`).join(" and ")}; filter to see others.` : "");
  }

  showRead(warnings) {
    const { frames: f, notes } = this.report;
    const unread = new Table("Frames that were not examined", [
      { title: "Why", cell: (u) => u.reason },
      { title: "Frames", cell: (u) => or0(u.frames) },
      { title: "RDMA", left: true, cell: (u) => (u.rdma ? el("strong", { class: "bad" }, "yes, or maybe") : "no") },
      { title: "First frame", cell: (u) => or0(u.first_frame) },
      { title: "What they are, and what to do", left: true, cell: (u) => el("span", { class: "wrong" }, [u.detail, u.advice].filter(Boolean).join("; ") || "–") },
    ], { empty: "None: every frame was examined." });
    unread.show(f?.unread ?? []);
    const list = (title, all) => (all.length ? [el("h3", {}, title), el("ul", {}, ...all.map((t) => el("li", {}, t)))] : []);
    this.read.replaceChildren(
      el("h2", { id: "read" }, f ? "What was read" : "What else should be known"),
      ...(f ? [el("p", {}, `${plural(f.examined, "frame")} of ${format.count(f.total)} were examined.`), el("h3", {}, "Not examined"), unread.node] : []),
      ...list("Not wrong, but to be known", notes.map((n) => `${n.subject.replaceAll(" -> ", " → ")}: ${n.text}`)), ...list("About the capture", warnings),
      ...(!f && notes.length === 0 ? [el("p", { class: "muted" }, "Nothing.")] : []));
  }
}
