// The pages work without this script. It adds what needs one.
"use strict";

// Copy buttons put a command on the clipboard.
function showCopyButtons() {
  for (const button of document.querySelectorAll("[data-copy]")) {
    if (!navigator.clipboard) break;
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = "Copied";
    });
  }
}
showCopyButtons();

// Escape closes the panel of an act and returns to its button; a slash goes to the search.
addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    const open = event.target.closest("details.act[open], details.step[open]");
    if (open) {
      open.open = false;
      open.querySelector("summary").focus();
    }
  }
  if (event.key === "/" && !event.target.closest("input, textarea, select")) {
    event.preventDefault();
    document.getElementById("jump").focus();
  }
});

// A long result is loaded when its call is opened. Toggle events do not bubble, so they are caught on their way down.
document.addEventListener("toggle", async (event) => {
  const link = event.target.open && event.target.querySelector("a[data-load]");
  if (!link) return;
  try {
    const reply = await fetch(link.href);
    const found = new DOMParser().parseFromString(await reply.text(), "text/html").querySelector(link.dataset.load);
    found?.removeAttribute("id");
    if (reply.ok && found) link.closest("p").replaceWith(found);
  } catch {
    // The link stays.
  }
}, true);

// A bulk act sends its next portion by itself, until somebody stops it.
const portion = document.querySelector("form[data-portion]");
if (portion) {
  const stop = portion.querySelector("[data-stop]");
  const next = setTimeout(() => portion.requestSubmit(), 500);
  stop.hidden = false;
  stop.addEventListener("click", () => { clearTimeout(next); stop.hidden = true; });
}

// A page that follows changes has a stream, which says when to load it again. A hidden page has none. The browser reconnects by itself.
let stream = null;
let stale = false; // it is to be loaded again, and somebody uses it
let loading = false;

const main = () => document.getElementById("main");

// A page with an open form, a chosen text or a field in use is not replaced under the hands of a person.
function inUse() {
  const field = document.activeElement?.closest("main input, main textarea, main select, main button");
  return Boolean(field || main().querySelector("details.act[open]") || !document.getSelection().isCollapsed);
}

// What an open part is called, to open it again.
function nameOf(part) {
  const row = part.closest("tr, li, section");
  return [row?.querySelector("th, h2, a")?.textContent, part.querySelector("summary")?.textContent].join("|");
}

function replace(next) {
  const open = new Set([...main().querySelectorAll("details[open]")].map(nameOf));
  const scrolled = [...main().querySelectorAll(".scroll")].map((region) => region.scrollLeft);
  const focused = document.activeElement?.closest("main a")?.getAttribute("href");
  main().replaceWith(next.getElementById("main"));
  document.querySelector("footer").replaceWith(next.querySelector("footer"));
  for (const part of main().querySelectorAll("details")) part.open = open.has(nameOf(part));
  main().querySelectorAll(".scroll").forEach((region, i) => (region.scrollLeft = scrolled[i] ?? 0));
  if (focused) main().querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  showCopyButtons();
}

// Those who look at the same page load it in the same turn, and the server reads it once for all of them.
async function load(event) {
  stale = true;
  if (loading || inUse()) return;
  loading = true;
  try {
    const reply = await fetch(location.href, event?.data ? { headers: { "Durable-Turn": event.data } } : {});
    if (reply.ok && reply.url === location.href.split("#")[0]) {
      const next = new DOMParser().parseFromString(await reply.text(), "text/html");
      if (next.getElementById("main") && !inUse()) {
        replace(next);
        stale = false;
      }
    }
  } catch {
    // The server is away: the stream ends too, and the page is loaded when it is back.
  }
  loading = false;
  follow();
}

function follow() {
  const address = document.hidden ? undefined : main().dataset.live;
  if (!address) {
    stream?.close();
    stream = null;
    return;
  }
  if (stream && stream.readyState !== EventSource.CLOSED) return;
  const reconnects = stream !== null;
  stream = new EventSource(address);
  stream.onmessage = load;
  stream.onopen = () => { if (reconnects || stale) load(); };
  stream.onerror = () => {
    stale = true;
    if (stream?.readyState === EventSource.CLOSED) setTimeout(follow, 5000); // it was refused, so the browser does not try again
  };
}

addEventListener("visibilitychange", () => { stale = true; follow(); });
addEventListener("pagehide", () => stream?.close());
document.addEventListener("focusout", () => setTimeout(() => { if (stale && stream) load(); }, 200));
follow();
