// Connects the parts of the page: the log reports changes, the control API returns the current state.
import { addCalls, forgetCalls, nameChats } from "./calls.js";
import { get, post } from "./control.js";
import { showConversation, startConversation } from "./conversation.js";
import { byId } from "./dom.js";
import { offerPlaces, refreshFaults, startFaults } from "./faults.js";
import { showFeeds } from "./feeds.js";
import { follow } from "./live.js";

const POSTS = 20;
const AT_MOST_EVERY = 200;
const AT_LEAST_EVERY = 2000;

let seq = 0;
let last = "";
let dueAt = Infinity;
let timer = 0;
let busy = false;

const say = (words, live) => {
  byId("state").textContent = words;
  byId("state").dataset.live = live ? "yes" : "no";
};

const refresh = async () => {
  const { chats } = await get(`chats?posts=${POSTS}`);
  const told = JSON.stringify(chats);
  if (told !== last) {
    last = told;
    nameChats(chats);
    showFeeds(chats);
    offerPlaces(chats);
  }
  await Promise.all([showConversation(chats), refreshFaults()]);
  say(`live · ${chats.length} chats · ${seq} calls`, true);
};

const run = async () => {
  dueAt = Infinity;
  if (busy) {
    refreshSoon(AT_MOST_EVERY);
    return;
  }
  busy = true;
  try {
    await refresh();
  } catch {
    say("not reachable", false);
  }
  busy = false;
  refreshSoon(AT_LEAST_EVERY);
};

const refreshSoon = (wait) => {
  const at = performance.now() + wait;
  if (at >= dueAt) return;
  clearTimeout(timer);
  dueAt = at;
  timer = setTimeout(run, wait);
};

const show = (view) => {
  document.body.dataset.view = view;
  for (const tab of document.querySelectorAll("[data-show]")) tab.ariaPressed = String(tab.dataset.show === view);
};

for (const tab of document.querySelectorAll("[data-show]")) tab.addEventListener("click", () => show(tab.dataset.show));
byId("reset").addEventListener("click", async () => {
  await post("reset");
  forgetCalls();
  refreshSoon(0);
});

await startFaults();
startConversation(() => refreshSoon(0));
refreshSoon(0);
follow({
  began: () => {
    forgetCalls();
    refreshSoon(0);
  },
  came: (calls) => {
    seq = calls[calls.length - 1].seq;
    addCalls(calls);
    refreshSoon(AT_MOST_EVERY);
  },
  lost: () => say("not reachable", false),
});
