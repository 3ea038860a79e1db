// The state that the address bar holds: a link shows the same. Keys: scenario, left, right, speed, seed and the other controls; t and pause where it is paused;
// set (KEY=VALUE, several); yaml, a scenario of the user's, compressed. A single-file page has its first state in a meta element.

const packed = async (bytes, stream) => new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());

const toBase64 = (bytes) => btoa(Array.from(bytes, (b) => String.fromCharCode(b)).join("")).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
const fromBase64 = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));

export const defaults = { scenario: "incast-10ms", left: "ecn", right: "standard-cnp", speed: "auto" };
const known = ["scenario", "left", "right", "speed"];

// read returns the state of the address bar.
export const read = async () => {
  const q = new URLSearchParams(location.hash.slice(1) || document.querySelector('meta[name="state"]')?.content);
  const s = { ...defaults, controls: {}, settings: [], text: "", t: null, pause: q.get("pause") === "1" };
  for (const [key, value] of q) {
    if (known.includes(key)) s[key] = value;
    else if (key === "set") s.settings.push({ Key: value.slice(0, value.indexOf("=")), Value: value.slice(value.indexOf("=") + 1) });
    else if (key === "t") s.t = Number(value);
    else if (key === "yaml") s.text = new TextDecoder().decode(await packed(fromBase64(value), new DecompressionStream("deflate-raw")));
    else if (key !== "pause") s.controls[key] = value;
  }
  return s;
};

// write puts the state into the address bar; only what isn't the default.
export const write = async (s) => {
  const q = new URLSearchParams();
  for (const key of known) if (s[key] !== defaults[key] || key === "scenario") q.set(key, s[key]);
  for (const [key, value] of Object.entries(s.controls)) q.set(key, value);
  for (const { Key, Value } of s.settings) q.append("set", `${Key}=${Value}`);
  if (s.pause) {
    q.set("t", String(s.t));
    q.set("pause", "1");
  }
  if (s.text) q.set("yaml", toBase64(await packed(new TextEncoder().encode(s.text), new CompressionStream("deflate-raw"))));
  history.replaceState(null, "", "#" + q);
};
