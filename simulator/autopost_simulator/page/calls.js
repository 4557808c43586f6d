// The last provider calls, newest first, with their results.
import { byId, clockTime, element } from "./dom.js";

const SHOWN = 80;
const FAST = 1e6;

const TONES = { accepted: "good", rate_limited: "odd", refused: "bad", faulted: "bad", reset: "bad", hung: "bad" };

let calls = [];
let drawn = 0;
let titles = new Map();

const took = (call) => {
  if (call.answered_ns === null) return "never answered";
  const passed = call.answered_ns - call.arrived_ns;
  return passed < FAST ? `${Math.round(passed / 1e3)} µs` : `${(passed / 1e6).toFixed(passed < 1e8 ? 1 : 0)} ms`;
};

const showCall = (call) => {
  const verdict = [call.verdict.replace("_", " "), call.status].filter(Boolean).join(" ");
  const where = call.chat ? (titles.get(`${call.platform}/${call.chat}`) ?? call.chat) : "";
  const row = element(
    "li",
    call.fault ? "call struck" : "call",
    element("span", `platform dot ${call.platform}`),
    element("strong", "method", call.method),
    element("span", `pill ${TONES[call.verdict]}`, verdict),
    element("span", "where", where),
    element("small", "when", `${clockTime(call.arrived_at, true)} · ${took(call)}`),
  );
  row.dataset.verdict = call.verdict;
  if (call.fault) row.append(element("span", "fault", `fault: ${call.fault}`));
  if (call.error) row.append(element("span", "error", call.error));
  else if (call.text) row.append(element("span", "said", call.text));
  return row;
};

const draw = () => {
  drawn = 0;
  byId("log").replaceChildren(...calls.map(showCall));
  byId("no-calls").hidden = calls.length > 0;
};

// At thousands of calls a second only the newest get a node, and drawing happens once per frame.
export const addCalls = (news) => {
  calls = [...news.slice(-SHOWN).reverse(), ...calls].slice(0, SHOWN);
  drawn ||= requestAnimationFrame(draw);
};

export const forgetCalls = () => {
  calls = [];
  draw();
};

export const nameChats = (chats) => {
  titles = new Map(chats.map((chat) => [`${chat.platform}/${chat.id}`, chat.title]));
  drawn ||= requestAnimationFrame(draw);
};
