// Reloads the page periodically and replaces its main part, so that the HTML is rendered on the server only.
const EVERY = 3000;
const state = document.getElementById("state");

function say(live, words) {
  state.dataset.live = live;
  state.textContent = words;
}

async function look() {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
  if (answer.status === 401) { location.reload(); return; }
  if (!answer.ok) throw new Error(String(answer.status));
  const next = new DOMParser().parseFromString(await answer.text(), "text/html");
  document.querySelector("main").replaceWith(document.adoptNode(next.querySelector("main")));
  say("yes", next.getElementById("state").textContent.replace("as of", "live,"));
}

async function live() {
  if (!document.hidden) {
    try { await look(); } catch { say("no", "the monitor does not answer; retrying"); }
  }
  setTimeout(live, EVERY);
}

setTimeout(live, EVERY);
document.addEventListener("visibilitychange", () => { if (!document.hidden) look().catch(() => {}); });
