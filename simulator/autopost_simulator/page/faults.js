// Faults: those that can be switched on, and the active ones with a switch to remove them.
import { get, post, remove } from "./control.js";
import { byId, element, reconcile } from "./dom.js";

const EFFECTS = [
  ["429 Too Many Requests", { status: 429, retry_after: 3 }],
  ["500 Internal Server Error", { status: 500 }],
  ["502 with an HTML page", { html: 502 }],
  ["Answer after 3 s", { delay: 3 }],
  ["Slow answer, byte by byte", { drip: 0.05 }],
  ["No answer", { hang: true }],
  ["Reset before the body is read", { reset: "before" }],
  ["Reset after accepting", { reset: "after" }],
  ["Garbage instead of JSON", { garbage: true }],
  ["Half an answer", { half: true }],
];
const OFTEN = [
  ["every call", {}],
  ["the next call", { times: 1 }],
  ["the next five calls", { times: 5 }],
  ["the third call", { nth: 3 }],
  ["one in four, at random", { probability: 0.25 }],
];
const PLACES = [
  ["anywhere", {}],
  ["Telegram", { platform: "telegram" }],
  ["MAX", { platform: "max" }],
];

let titles = new Map();

const option = ([words, value]) => {
  const made = element("option", "", words);
  made.value = JSON.stringify(value);
  return made;
};

const group = (label, options) => {
  const made = element("optgroup", "", ...options.map(option));
  made.label = label;
  return made;
};

const explain = (problem) => {
  byId("fault-problem").textContent = problem ? problem.message : "";
  byId("fault-problem").hidden = !problem;
};

const summary = (fault) => {
  const { effect } = fault;
  const what = EFFECTS.find(([, known]) => JSON.stringify(known) === JSON.stringify(effect));
  return what ? what[0] : (effect.catalogue ?? JSON.stringify(effect));
};

const scope = (fault) => {
  const parts = [fault.platform, fault.method, fault.chat, fault.token, fault.nth && `from no. ${fault.nth}`];
  if (fault.times) parts.push(fault.times === 1 ? "once" : `${fault.times} times`);
  if (fault.until) parts.push(`until ${fault.until}`);
  if (fault.probability) parts.push(`${Math.round(fault.probability * 100)} %`);
  return parts.filter(Boolean).join(" · ") || "everywhere";
};

const showFault = (fault) => {
  const off = element("button", "quiet", "Switch off");
  off.type = "button";
  off.addEventListener("click", () => attempt(() => remove(`faults?name=${encodeURIComponent(fault.name)}`)));
  const words = element("div", "", element("strong", "", summary(fault)), element("small", "", `${fault.name} · ${scope(fault)}`));
  return element("li", "", words, element("span", fault.struck ? "pill bad" : "pill", `struck ${fault.struck}`), off);
};

const attempt = async (act) => {
  try {
    await act();
    explain(null);
  } catch (problem) {
    explain(problem);
  }
  await refreshFaults();
};

export const refreshFaults = async () => {
  const { faults } = await get("faults");
  const named = faults.map((fault) => ({ ...fault, chat: titles.get(String(fault.chat)) ?? fault.chat }));
  reconcile(byId("active"), named, (fault) => fault.name, showFault);
};

export const offerPlaces = (chats) => {
  const place = byId("place");
  const told = JSON.stringify(chats.map((chat) => [chat.platform, chat.id, chat.title]));
  if (place.dataset.told === told) return;
  const chosen = place.value;
  const named = chats.map((chat) => [chat.title, { platform: chat.platform, chat: chat.id }]);
  place.replaceChildren(...PLACES.map(option), ...(named.length ? [group("Only in", named)] : []));
  place.dataset.told = told;
  titles = new Map(chats.map((chat) => [chat.id, chat.title]));
  if (chosen) place.value = chosen;
  if (!place.value) place.selectedIndex = 0;
};

export const startFaults = async () => {
  byId("often").replaceChildren(...OFTEN.map(option));
  byId("effect").replaceChildren(...EFFECTS.map(option));
  offerPlaces([]);
  byId("fault-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const [effect, place, often] = ["effect", "place", "often"].map((id) => JSON.parse(byId(id).value));
    attempt(() => post("faults", { effect, ...place, ...often }));
  });
  const { names } = await get("catalogue");
  byId("effect").append(group("Real errors of the platforms", names.map((name) => [name, { catalogue: name }])));
  await refreshFaults();
};
