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

// Those who look at the same page load it in the same reload round, and the server reads it once for all of them.
async function load(event) {
  stale = true;
  if (loading || inUse()) return;
  loading = true;
  try {
    const reply = await fetch(location.href, event?.data ? { headers: { "Durable-Round": event.data } } : {});
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

// Over HTTP/1.1 a browser has six connections to a host, and a stream takes one. So all windows of a browser have at most four streams, and
// take turns if they are more. A turn is longer than the server takes to load a page again. The locks do not exist on http: pages of
// other hosts than localhost; these windows do not wait for each other.
const mostStreams = 4;
const turnLength = 10_000;
const placeName = (number) => `durable stream ${number}`;
let place = null; // aborted when the page needs no stream any more; it has a place for one, or waits for it

// A place that no window has, or any.
async function choosePlace() {
  const names = Array.from({ length: mostStreams }, (_, i) => placeName(i));
  const { held } = await navigator.locks.query();
  const free = names.filter((name) => !held.some((lock) => lock.name === name));
  const among = free.length ? free : names;
  return among[Math.floor(Math.random() * among.length)];
}

async function isAwaited(name) {
  return (await navigator.locks.query()).pending.some((lock) => lock.name === name);
}

async function takeTurns(mine) {
  const ended = new Promise((resolve) => mine.signal.addEventListener("abort", resolve));
  const turn = async ({ name }) => {
    do {
      connect();
      await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, turnLength))]);
    } while (!mine.signal.aborted && !(await isAwaited(name)));
    if (!mine.signal.aborted) disconnect();
  };
  while (!mine.signal.aborted) {
    await navigator.locks.request(await choosePlace(), { signal: mine.signal }, turn).catch((error) => {
      if (!mine.signal.aborted) throw error;
    });
  }
}

function connect() {
  const address = main().dataset.live;
  if (!address || stream && stream.readyState !== EventSource.CLOSED) return;
  const reconnects = stream !== null;
  stream = new EventSource(address);
  stream.onmessage = load;
  stream.onopen = () => { if (reconnects || stale) load(); };
  stream.onerror = () => {
    stale = true;
    if (stream?.readyState === EventSource.CLOSED) setTimeout(() => { if (stream) connect(); }, 5000); // it was refused, so the browser does not try again
  };
}

function disconnect() {
  stream?.close();
  stream = null;
}

function unfollow() {
  place?.abort();
  place = null;
  disconnect();
}

function follow() {
  if (document.hidden || !main().dataset.live) unfollow();
  else if (!navigator.locks) connect();
  else if (!place) takeTurns(place = new AbortController()).catch(connect);
}

addEventListener("visibilitychange", () => { stale = true; follow(); });
addEventListener("pagehide", unfollow);
addEventListener("pageshow", follow); // also when the browser goes back to a page that it has kept
document.addEventListener("focusout", () => setTimeout(() => { if (stale && stream) load(); }, 200));
follow();
