// One post of a chat; the parts of an album are shown as one post, as in the messenger.
import { clockTime, element, link } from "./dom.js";
import { mediaOf, showMedia } from "./media.js";
import { richText } from "./rich_text.js";

export const albumsTogether = (posts) => {
  const together = [];
  for (const post of posts) {
    const album = post.extra?.media_group_id;
    const last = together[together.length - 1];
    if (album && last?.album === album) last.parts.push(post);
    else together.push({ id: post.id, album, parts: [post] });
  }
  return together;
};

export const rowsOfButtons = (buttons) => {
  if (!buttons) return [];
  if (buttons.inline_keyboard) return buttons.inline_keyboard;
  return buttons.filter((one) => one.type === "inline_keyboard").flatMap((one) => one.payload.buttons);
};

const addressOf = (button) => button.url ?? button.web_app?.url ?? button.login_url?.url;

// `press` is called with a callback button; without it buttons are only shown.
const showButton = (button, press) => {
  const address = addressOf(button);
  if (address) {
    const made = link(address, button.text);
    made.className = "button goes-out";
    return made;
  }
  const made = element(press ? "button" : "span", "button", button.text);
  if (press) {
    made.type = "button";
    made.addEventListener("click", () => press(button));
  }
  return made;
};

const showButtons = (rows, press) =>
  element("div", "buttons", ...rows.map((row) => element("div", "", ...row.map((button) => showButton(button, press)))));

export const showPost = ({ parts }, press) => {
  const shown = element("article", "post", ...showMedia(parts.flatMap(mediaOf)));
  for (const part of parts) {
    if (part.text) shown.append(element("div", "text", ...richText(part.text, part.markup)));
  }
  const rows = parts.flatMap((part) => rowsOfButtons(part.buttons));
  if (rows.length) shown.append(showButtons(rows, press));
  const edited = parts.some((part) => part.extra?.edit_date) ? "edited " : "";
  const time = element("time", "", edited + clockTime(parts[0].at));
  time.dateTime = parts[0].at;
  shown.append(time);
  return shown;
};
