// Images, videos, audio and files of a post, in one form for both platforms.
import { element } from "./dom.js";

const KINDS = { photo: "image", video: "video", animation: "video", audio: "audio", document: "file" };

// An animation is a video or a GIF, which is an image.
const kindOf = (one) => (one.kind === "animation" && one.content_type?.startsWith("image/") ? "image" : KINDS[one.kind]);

const fromTelegram = (media) =>
  media.map((one) => ({ kind: kindOf(one), at: one.url, name: one.name ?? one.title, size: one.size }));

// The URL contains the host that the bot uses; the page uses its own host.
const ownAddress = (url) => {
  try {
    const { pathname } = new URL(url, location.href);
    return pathname.startsWith("/max-files/") ? pathname : null;
  } catch {
    return null;
  }
};

const fromMax = (attachments) =>
  attachments
    .filter((one) => one.type !== "inline_keyboard")
    .map((one) => {
      const known = ["image", "video", "audio", "file"].includes(one.type);
      const at = known ? ownAddress(one.payload?.url) : null;
      return { kind: at ? one.type : "elsewhere", at, name: one.filename ?? one.payload?.url ?? one.type, size: one.size };
    });

export const mediaOf = (post) => {
  const extra = post.extra ?? {};
  return extra.attachments ? fromMax(extra.attachments) : fromTelegram(extra.media ?? []);
};

const bytes = (size) => {
  if (size < 1024) return `${size} B`;
  return size < 1024 * 1024 ? `${(size / 1024).toFixed(0)} KB` : `${(size / 1024 / 1024).toFixed(1)} MB`;
};

const picture = (one) => {
  const made = element("img");
  made.src = one.at;
  made.alt = one.name ?? "picture";
  made.loading = "lazy";
  made.addEventListener("error", () => made.replaceWith(element("span", "broken", "picture not readable")));
  return made;
};

const player = (tag, one) => {
  const made = element(tag);
  made.src = one.at;
  made.controls = true;
  made.preload = "metadata";
  return made;
};

const document_ = (one) => {
  const made = element(one.at ? "a" : "span", "document", element("span", "sheet"));
  made.append(element("span", "name", one.name ?? "file"));
  if (one.size !== undefined) made.append(element("small", "", bytes(one.size)));
  if (one.at) {
    made.href = one.at;
    made.download = one.name ?? "";
  }
  return made;
};

export const showMedia = (media) => {
  const seen = media.filter((one) => one.kind === "image" || one.kind === "video");
  const others = media.filter((one) => !seen.includes(one));
  const shown = [];
  if (seen.length) {
    const tiles = seen.map((one) => (one.kind === "image" ? picture(one) : player("video", one)));
    const grid = element("div", seen.length > 1 ? "album" : "single", ...tiles);
    grid.dataset.count = String(seen.length);
    shown.push(grid);
  }
  for (const one of others) shown.push(one.kind === "audio" ? player("audio", one) : document_(one));
  return shown;
};
