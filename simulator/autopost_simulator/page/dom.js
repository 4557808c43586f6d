// Helpers to create nodes. Texts of posts are inserted as text, never as markup.

export const element = (tag, className, ...content) => {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...content);
  return made;
};

export const byId = (id) => document.getElementById(id);

const SAFE = new Set(["http:", "https:", "tg:", "ton:", "max:", "mailto:", "tel:"]);

export const link = (address, ...content) => {
  const made = element("a", "", ...content);
  const parsed = URL.parse ? URL.parse(address) : tryParse(address);
  if (parsed && SAFE.has(parsed.protocol)) {
    made.href = parsed.href;
    made.target = "_blank";
    made.rel = "noopener noreferrer";
  }
  made.title = String(address);
  return made;
};

const tryParse = (address) => {
  try {
    return new URL(address);
  } catch {
    return null;
  }
};

// Keeps the nodes of unchanged items, so that images do not flicker and the scroll position stays.
export const reconcile = (parent, items, keyOf, build) => {
  const before = parent.known ?? new Map();
  parent.known = new Map();
  const nodes = items.map((item) => {
    const key = keyOf(item);
    const told = JSON.stringify(item);
    const old = before.get(key);
    const kept = old && old.told === told ? old : { told, node: build(item, old && old.node) };
    parent.known.set(key, kept);
    return kept.node;
  });
  if (nodes.length !== parent.childNodes.length || nodes.some((node, at) => node !== parent.childNodes[at])) {
    parent.replaceChildren(...nodes);
  }
};

export const clockTime = (at, precise) => {
  const time = new Date(at);
  const two = (number) => String(number).padStart(2, "0");
  const minutes = `${two(time.getHours())}:${two(time.getMinutes())}`;
  return precise ? `${minutes}:${two(time.getSeconds())}.${String(time.getMilliseconds()).padStart(3, "0")}` : minutes;
};
