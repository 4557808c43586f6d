// A MAX chat: you are a person who writes to a bot and presses its buttons.
import { get, post } from "./control.js";
import { byId, element, reconcile } from "./dom.js";
import { albumsTogether, showPost } from "./post.js";

const FIRST_GUEST = 7001;

let dialogs = [];
let changed = () => {};
let pressed = null;

const guest = () => Math.max(FIRST_GUEST - 1, ...dialogs.map((dialog) => dialog.user_id)) + 1;

const chosen = () => dialogs.find((dialog) => String(dialog.user_id) === byId("dialog").value);

const explain = (problem) => {
  byId("chat-problem").textContent = problem ? problem.message : "";
  byId("chat-problem").hidden = !problem;
};

const attempt = async (act) => {
  try {
    await act();
    explain(null);
  } catch (problem) {
    explain(problem);
  }
  changed();
};

const deed = (user, what, body) => post(`max/customers/${user}/${what}`, body);

// A new person starts the bot first, as the messenger requires.
const write = async (text) => {
  const bot = byId("bot").value ? { token: byId("bot").value } : {};
  const known = chosen();
  const user = known ? known.user_id : guest();
  if (!known) await deed(user, "start", { ...bot, first_name: `Guest ${user - FIRST_GUEST + 1}` });
  await deed(user, "write", { ...bot, text });
  byId("words").value = "";
  byId("dialog").dataset.wanted = String(user);
};

const press = (dialog) => (message, button) =>
  attempt(async () => {
    const { update } = await deed(dialog.user_id, "press", { message_id: message, button: button.text });
    pressed = update.callback?.callback_id ?? null;
  });

const showTurn = (dialog, turn) => {
  const yours = Boolean(turn.parts[0].extra?.sender);
  const shown = showPost(turn, yours ? undefined : (button) => press(dialog)(turn.id, button));
  return element("li", yours ? "turn yours" : "turn", shown);
};

const showTalk = () => {
  const dialog = chosen();
  const turns = dialog ? albumsTogether(dialog.posts) : [];
  const talk = byId("talk");
  const atEnd = talk.scrollHeight - talk.scrollTop - talk.clientHeight < 40;
  reconcile(talk, turns, (turn) => `${dialog.id}/${turn.id}`, (turn) => showTurn(dialog, turn));
  if (atEnd) talk.scrollTop = talk.scrollHeight;
  byId("no-talk").hidden = turns.length > 0;
};

// The first option is selected by default.
const offer = (select, options) => {
  const told = JSON.stringify(options);
  if (select.dataset.told !== told) {
    select.replaceChildren(...options.map(([value, words]) => Object.assign(element("option", "", words), { value })));
    select.dataset.told = told;
  }
  const wanted = select.dataset.wanted ?? options[0]?.[0];
  if (options.some(([value]) => value === wanted)) select.value = wanted;
};

const showNotice = async () => {
  if (!pressed) return;
  const { callbacks } = await get("max/callbacks");
  const notice = callbacks.findLast((callback) => callback.callback_id === pressed)?.notification;
  if (!notice) return;
  pressed = null;
  const shown = element("p", "notice", notice);
  shown.addEventListener("click", () => shown.remove());
  byId("talk").after(shown);
};

export const showConversation = async (chats) => {
  dialogs = chats.filter((chat) => chat.platform === "max" && chat.type === "dialog");
  offer(byId("dialog"), [...dialogs.map((dialog) => [String(dialog.user_id), dialog.title]), ["", "somebody new"]]);
  showTalk();
  const { tokens } = await get("tokens");
  offer(byId("bot"), tokens.filter((bot) => bot.platform === "max").map((bot) => [bot.token, bot.name]));
  await showNotice();
};

export const startConversation = (whenChanged) => {
  changed = whenChanged;
  for (const select of [byId("dialog"), byId("bot")]) {
    select.addEventListener("change", () => {
      select.dataset.wanted = select.value;
      showTalk();
    });
  }
  byId("who").addEventListener("submit", (event) => event.preventDefault());
  byId("say").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = byId("words").value.trim();
    if (text) attempt(() => write(text));
  });
};
