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

// diagnose reads a capture, in one file or several, and shows what is wrong.
const diagnose = async (files) => {
  const names = files.length === 1 ? files[0].name : `${files.length} files`, size = files.reduce((sum, file) => sum + file.size, 0);
  if (!engine?.worker) start();
  if (!engine?.worker) return; // start has said why
  const mine = engine;
  say("");
  busy(true);
  byId("result").replaceChildren();
  setText(byId("doing"), `Reading ${names} (${format.bytes(size)})`);
  byId("progress").value = 0;
  document.title = "What is wrong with my RDMA?";
  const progress = ({ pass, read }) => {
    byId("progress").value = (pass - 1 + read / Math.max(size, 1)) / Math.max(passes, pass);
    setText(byId("doing"), `Reading ${names} (${format.bytes(size)}), for the ${["first", "second", "third"][pass - 1] ?? pass + "th"} time`);
  };
  try {
    const argument = { files: files.map(({ name, size }) => ({ name, size })), roceport: Number(byId("port").value), connections: Number(byId("connections").value) };
    const answer = await mine.json("diagnose", argument, progress, files);
    busy(false);
    show({ ...answer, name: names }, (connection, requester, traced) => mine.json("trace", { connection, requester }, traced));
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

const choose = (files) => {
  if (files?.length) diagnose([...files]);
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
  choose(e.dataTransfer?.files);
});
byId("pick").addEventListener("click", () => byId("file").click());
byId("file").addEventListener("change", () => {
  choose(byId("file").files);
  byId("file").value = "";
});
byId("cancel").addEventListener("click", () => {
  start();
  busy(false);
  say("Cancelled. Nothing of the file was kept.");
});
themeButton(byId("theme"));
if (location.hash === "#report") served();
else start();
