// el makes an element: attributes by name, listeners as functions (onclick), children as nodes or text.
export const el = (name, attributes = {}, ...children) => {
  const svg = name.startsWith("svg:");
  const e = svg ? document.createElementNS("http://www.w3.org/2000/svg", name.slice(4)) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") e[key] = value;
    else if (key === "style") e.style.cssText = value; // the attribute would be an inline style, which the policy refuses
    else if (value === true) e.setAttribute(key, "");
    else if (value !== false && value != null) e.setAttribute(key, value);
  }
  e.append(...children.filter((c) => c != null));
  return e;
};

export const byId = (id) => document.getElementById(id);

// setText changes an element's text only if it differs: an unchanged one causes no layout, and a screen reader says nothing.
export const setText = (e, text) => {
  if (e.textContent !== text) e.textContent = text;
};
