// The channels: a card for every chat except the dialogs of MAX, newest post on top.
import { byId, element, reconcile } from "./dom.js";
import { albumsTogether, showPost } from "./post.js";

const HUES = 12;

const hue = (text) => [...text].reduce((sum, letter) => (sum * 31 + letter.codePointAt(0)) % HUES, 0) * (360 / HUES);

const avatar = (chat) => {
  const made = element("span", "avatar", [...chat.title.trim()][0]?.toUpperCase() ?? "?");
  made.style.setProperty("--hue", hue(chat.platform + chat.id));
  made.ariaHidden = "true";
  return made;
};

const heading = (chat) => {
  const platform = element("span", `platform ${chat.platform}`, chat.platform === "max" ? "MAX" : "Telegram");
  const place = chat.username ? `@${chat.username}` : chat.type;
  const names = element("div", "names", element("h3", "", chat.title), element("small", "", platform, ` · ${place}`));
  const made = element("header", "", avatar(chat), names);
  if (chat.state !== "ok") made.append(element("span", "pill bad", chat.state.replaceAll("_", " ")));
  const count = element("span", "pill", chat.messages);
  count.title = "messages";
  made.append(count);
  return made;
};

const showFeed = (chat, before) => {
  const feed = before ?? element("article", "card feed", element("div", "head"), element("div", "posts"));
  feed.dataset.chat = `${chat.platform}/${chat.id}`;
  feed.children[0].replaceChildren(heading(chat));
  const posts = albumsTogether(chat.posts).reverse();
  reconcile(feed.children[1], posts, (post) => String(post.id), (post) => showPost(post));
  return feed;
};

export const showFeeds = (chats) => {
  const shown = chats.filter((chat) => chat.type !== "dialog");
  reconcile(byId("feeds"), shown, (chat) => `${chat.platform}/${chat.id}`, showFeed);
  byId("no-feeds").hidden = shown.length > 0;
};
