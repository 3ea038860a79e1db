// The controls of the scenario: they change the state, and the page starts anew.
import { el, byId } from "../common/dom.js";

export const responses = {
  ecn: "ECN and the receiver's CNP", "standard-cnp": "cnpgate: standard CNP", "fast-cnp": "cnpgate: Fast CNP", "long-haul-cnp": "cnpgate: Long-haul CNP",
  "fast-cnp-hpcc": "cnpgate: Fast CNP with HPCC", ppfc: "cnpgate: PPFC", proxy: "cnpgate: by way of a proxy", configured: "as the gateways are configured",
};

export const speeds = { auto: "slow, then faster", "1e4": "10 µs a second", "1e5": "100 µs a second", "1e6": "1 ms a second", "1e7": "10 ms a second", "1e8": "100 ms a second", "1e15": "as fast as it can" };

const options = (entries, chosen) => entries.map(([value, text]) => el("option", { value, selected: value === chosen }, text));

export class Controls {
  // changed is called after a change of the state by the user, with whether the scenario itself is another one.
  constructor(engine, state, changed) {
    this.engine = engine;
    this.state = state;
    this.changed = changed;
    this.scenario = byId("scenario");
    this.scenario.onchange = () => {
      Object.assign(state, { scenario: this.scenario.value, text: "", settings: [] });
      const seed = state.controls.seed;
      state.controls = seed ? { seed } : {};
      changed(true);
    };
    for (const side of ["left", "right"]) {
      byId(side).replaceChildren(...options(Object.entries(responses), state[side]));
      byId(side).onchange = (e) => {
        state[side] = e.target.value;
        changed(false);
      };
    }
    byId("seed").value = state.controls.seed ?? 1;
    byId("seed").onchange = (e) => {
      if (!e.target.checkValidity() || e.target.value === "") return;
      state.controls.seed = e.target.value;
      changed(false);
    };
    byId("controls").onsubmit = (e) => e.preventDefault();
  }

  // showMenu fills the menu of scenarios.
  async showMenu() {
    this.menu = await this.engine.json("menu");
    const { scenario, text } = this.state;
    this.scenario.replaceChildren(...(text ? [el("option", { value: scenario, selected: true }, `${scenario} (your own)`)] : []),
      ...this.menu.map((g) => el("optgroup", { label: g.title }, ...options(g.scenarios.map((s) => [s.name, `${s.name}: ${s.title}`]), text ? "" : scenario))));
    const entry = !text && this.menu.flatMap((g) => g.scenarios).find((s) => s.name === scenario);
    byId("summary").textContent = entry ? entry.summary + "." : "";
  }

  // showKnobs shows the controls that the scenario has.
  async showKnobs() {
    const { scenario, text, controls } = this.state;
    const knobs = (await this.engine.json("controls", { scenario, text })) ?? [];
    byId("knobs").replaceChildren(...knobs.map((k) => {
      const value = controls[k.name] ?? k.value, all = k.options.includes(value) ? k.options : [value, ...k.options];
      const select = el("select", { name: k.name }, ...options(all.map((v) => [v, v === k.value ? v + " *" : v]), value));
      select.onchange = () => {
        if (select.value === k.value) delete controls[k.name];
        else controls[k.name] = select.value;
        this.changed(false);
      };
      return el("label", {}, k.label, select);
    }));
  }
}
