// Text and its formatting, of Telegram ({offset, length}) or MAX ({from, length}), as nodes.
import { element, link } from "./dom.js";

const TAGS = {
  bold: "b", strong: "b",
  italic: "i", emphasized: "i",
  underline: "u",
  strikethrough: "s",
  code: "code", monospaced: "code",
  pre: "pre",
  blockquote: "blockquote", expandable_blockquote: "blockquote", quote: "blockquote",
  highlighted: "mark",
  heading: "h4",
};

const wrap = (mark, text, content) => {
  if (mark.type === "spoiler") return spoiler(content);
  if (mark.type === "url") return link(text, ...content);
  if (mark.type === "text_link" || mark.type === "link") return link(mark.url, ...content);
  if (mark.type === "email") return link(`mailto:${text}`, ...content);
  if (mark.type === "phone_number") return link(`tel:${text}`, ...content);
  const made = element(TAGS[mark.type] ?? "span", "", ...content);
  if (!TAGS[mark.type]) made.className = "mention";
  return made;
};

const spoiler = (content) => {
  const made = element("span", "spoiler", ...content);
  made.tabIndex = 0;
  made.title = "Hidden; click to see";
  made.addEventListener("click", () => made.classList.add("seen"));
  return made;
};

// An entity that ends after its surrounding one continues behind it.
const nodes = (text, from, until, marks) => {
  const made = [];
  let at = from;
  let waiting = marks;
  while (waiting.length) {
    const [mark, ...later] = waiting;
    const end = Math.min(mark.until, until);
    const inside = later.filter((other) => other.from < end);
    const behind = inside.filter((other) => other.until > end).map((other) => ({ ...other, from: end }));
    if (mark.from > at) made.push(text.slice(at, mark.from));
    made.push(wrap(mark, text.slice(mark.from, end), nodes(text, mark.from, end, inside)));
    at = end;
    waiting = [...behind, ...later.filter((other) => other.from >= end)];
  }
  if (at < until) made.push(text.slice(at, until));
  return made;
};

export const richText = (text, markup) => {
  const marks = (markup ?? [])
    .map((mark) => ({ ...mark, from: mark.offset ?? mark.from, until: (mark.offset ?? mark.from) + mark.length }))
    .filter((mark) => mark.length > 0 && mark.from >= 0 && mark.until <= text.length)
    .sort((one, other) => one.from - other.from || other.length - one.length);
  return nodes(text, 0, text.length, marks);
};
