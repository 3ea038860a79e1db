// Is the gateway well? What header and first tab say.
import { sum } from "./state.js";
import * as format from "../common/format.js";

const few = (all) => (all.length > 4 ? `${all.slice(0, 3).join(", ")} and ${all.length - 3} more` : all.join(", "));

// modeText says whether the gateway notifies, or which of its ports only observe.
const modeText = (mode) => {
  const ports = mode?.ports ?? [], observing = ports.filter((p) => p.mode === "observe").map((p) => p.port);
  if (!ports.length) return "mode not known";
  if (!observing.length) return "mode send";
  return observing.length === ports.length ? "mode observe: nobody is notified" : `mode send, and observe of ${few(observing)}`;
};

// fileDiffers is 1 if the configuration file differs from what is in force, as after a reload on trial that went back, else 0.
export const fileDiffers = (state) => sum(state.counters?.counters?.config_file_differs);

// wellness is {mode, sentence, bad, dropping}: bad if a port doesn't forward, dropping the ports that drop frames now.
export const wellness = (state) => {
  const problems = Object.keys(state.health?.problems ?? {}), services = Object.keys(state.health?.services ?? {}), notices = state.health?.notices ?? [];
  const ports = [...state.ports.values()], dropping = ports.filter((p) => p.rates.dropped > 0), parts = [];
  if (problems.length) parts.push(`${few(problems)} ${problems.length === 1 ? "does" : "do"} not forward`);
  if (dropping.length) parts.push(`${format.count(dropping.reduce((n, p) => n + p.rates.dropped, 0))} frames a second are dropped at ${few(dropping.map((p) => p.name))}`);
  if (services.length) parts.push(`${few(services)} ${services.length === 1 ? "doesn't" : "don't"} work`);
  const differs = fileDiffers(state), others = Math.max(0, notices.length - differs);
  if (differs) parts.push("the configuration file differs from what is in force");
  if (others) parts.push(others === 1 ? "1 thing needs attention" : `${others} things need attention`);
  const sentence = !state.health ? "Its health is not known." : parts.length ? parts.join("; ") + "." : `All is well: ${ports.length === 2 ? "both ports forward" : `all ${ports.length} ports forward`}, and nothing is dropped.`;
  return { mode: modeText(state.mode), sentence, bad: problems.length > 0, dropping };
};

// dropped are a port's drops since the start, by reason.
export const dropped = (p) => (typeof p.now.counters.dropped_packets_total === "object" ? p.now.counters.dropped_packets_total : { "": sum(p.now.counters.dropped_packets_total) });
