// The page that says what is wrong with the RDMA connections of a capture: one that is dropped on it, which the engine reads in a worker thread, or
// (#report) the one that cnpgate replay --health --web has read.
import "./diagnose.css";
import { byId, setText } from "../common/dom.js";
import { Engine } from "../common/engine.js";
import * as format from "../common/format.js";
import { themeButton } from "../common/theme.js";
import { View } from "./view.js";

const passes = 4; // times that the engine reads most files for a report; more if they have very many connections, or are out of the order of time

let engine = null;

const say = (text, wrong) => {
  setText(byId("message"), text);
  byId("message").classList.toggle("wrong", Boolean(wrong));
};

const start = () => {
  engine?.end();
  engine = new Engine((text) => {
    engine = null; // the next file starts another one
    busy(false);
    say(text, true);
  });
};

const busy = (is) => {
  byId("busy").hidden = !is;
  byId("choose").hidden = is;
};

// diagnose reads a file, and shows what is wrong.
const diagnose = async (file) => {
  if (!engine?.worker) start();
  if (!engine?.worker) return; // start has said why
  const mine = engine;
  say("");
  busy(true);
  byId("result").replaceChildren();
  setText(byId("doing"), `Reading ${file.name} (${format.bytes(file.size)})`);
  byId("progress").value = 0;
  document.title = "What is wrong with my RDMA?";
  const progress = ({ pass, read, size }) => {
    byId("progress").value = (pass - 1 + read / Math.max(size, 1)) / Math.max(passes, pass);
    setText(byId("doing"), `Reading ${file.name} (${format.bytes(file.size)}), for the ${["first", "second", "third"][pass - 1] ?? pass + "th"} time`);
  };
  try {
    const answer = await mine.json("diagnose", { name: file.name, size: file.size, roceport: Number(byId("port").value), connections: Number(byId("connections").value) }, progress, file);
    busy(false);
    show(answer, (connection, requester, traced) => mine.json("trace", { connection, requester }, traced));
  } catch (error) {
    busy(false);
    say(error.message, true);
  }
};

const show = ({ name, warnings, report }, trace) => {
  const view = new View({ trace });
  byId("choose").classList.add("small");
  setText(byId("drop-title"), `${name}: drop another capture here`);
  byId("result").replaceChildren(view.node);
  view.show(report, warnings ?? []);
  document.title = `${name}: ${report.conclusion}`;
};

// served shows the report that the server has.
const served = async () => {
  const get = async (path) => {
    const answer = await fetch(path, { cache: "no-store", credentials: "omit" });
    const value = await answer.json();
    if (!answer.ok) throw new Error(value.error);
    return value;
  };
  busy(false);
  try {
    show(await get("diagnosis"), (connection, requester) => get(`diagnosis/trace?connection=${connection}&requester=${requester}`));
  } catch (error) {
    say(`The report can't be read: ${error.message}`, true);
  }
};

const drop = byId("drop");
for (const kind of ["dragenter", "dragover"]) {
  document.addEventListener(kind, (e) => {
    e.preventDefault();
    drop.classList.add("over");
  });
}
for (const kind of ["dragleave", "drop"]) document.addEventListener(kind, () => drop.classList.remove("over"));
document.addEventListener("drop", (e) => {
  e.preventDefault();
  const file = e.dataTransfer?.files[0];
  if (file) diagnose(file);
});
byId("pick").addEventListener("click", () => byId("file").click());
byId("file").addEventListener("change", () => {
  const file = byId("file").files[0];
  byId("file").value = "";
  if (file) diagnose(file);
});
byId("cancel").addEventListener("click", () => {
  start();
  busy(false);
  say("Cancelled. Nothing of the file was kept.");
});
themeButton(byId("theme"));
if (location.hash === "#report") served();
else start();
