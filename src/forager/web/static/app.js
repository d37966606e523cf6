// Keeps pages up to date, and asks for confirmation before actions that cannot be undone.

const words = document.getElementById("live-words");
const message = document.getElementById("live-message");
const state = document.getElementById("live-state");

// --- times ------------------------------------------------------------------------------------

const STEPS = [[60, 1, "s"], [3600, 60, "min"], [86400, 3600, "h"], [1e12, 86400, "d"]];

function ago(seconds) {
  const size = Math.abs(seconds);
  if (size < 2) return "now";
  const [, unit, name] = STEPS.find(([end]) => size < end);
  const span = `${Math.trunc(size / unit)} ${name}`;
  return seconds < 0 ? `in ${span}` : `${span} ago`;
}

const local = {
  day: new Intl.DateTimeFormat("sv", { dateStyle: "short" }),
  minute: new Intl.DateTimeFormat("sv", { dateStyle: "short", timeStyle: "short" }),
  second: new Intl.DateTimeFormat("sv", { dateStyle: "short", timeStyle: "medium" }),
};
const utcTime = /\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/;
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });

function tellTimes(root) {
  const now = Date.now();
  for (const time of root.querySelectorAll("time[data-ago]")) {
    const at = Date.parse(time.dateTime);
    const late = now - at > 2000 && "due" in time.dataset;
    const text = (late ? "due " : "") + ago((now - at) / 1000);
    if (time.textContent !== text) time.textContent = text;
    // the server does not know the time zone of the reader
    if (time.title.endsWith("UTC")) time.title = exact.format(at);
  }
  for (const time of root.querySelectorAll('time[data-local][title$="UTC"]')) {
    const at = Date.parse(time.dateTime);
    time.textContent = local[time.dataset.local].format(at);
    time.title = exact.format(at);
  }
  for (const title of root.querySelectorAll("title[data-at]")) {
    const at = exact.format(Date.parse(title.dataset.at));
    title.textContent = title.textContent.replace(utcTime, at);
  }
}

// --- one stream for the page ---------------------------------------------------------------------

const RETRY = 2000;
let source = null;
let again = null;
let lastLook = null;
let lost = false;

function clock(at) {
  return at ? new Date(at * 1000).toLocaleTimeString() : "the page's loading";
}

function show(kind, text) {
  state.hidden = false;
  state.dataset.state = kind;
  words.textContent = text;
}

function open() {
  close();
  if (document.hidden || !document.body.hasAttribute("data-live")) return;
  source = new EventSource(location.pathname + location.search);
  source.addEventListener("part", (event) => swap(JSON.parse(event.data)));
  source.addEventListener("look", (event) => {
    lastLook = JSON.parse(event.data).at;
    if (lost) message.textContent = "Reconnected.";
    lost = false;
    show("live", `Live, as of ${clock(lastLook)}`);
  });
  source.addEventListener("unavailable", (event) => lose(JSON.parse(event.data).text));
  source.addEventListener("gone", () => location.reload());
  source.addEventListener("error", () => {
    lose("the connection is lost");
    // a refused stream is not tried again by the browser itself
    if (source && source.readyState === EventSource.CLOSED) {
      close();
      again = setTimeout(open, RETRY);
    }
  });
}

function close() {
  clearTimeout(again);
  if (source) source.close();
  source = null;
}

function lose(why) {
  const text = `Not live: ${why}. Numbers are as of ${clock(lastLook)}.`;
  if (!lost) message.textContent = text;
  lost = true;
  show("lost", text);
}

function swap(part) {
  // what a question is about stays as it is until the question is answered
  if (dialog.open) return held.set(part.id, part);
  const element = document.getElementById(part.id);
  if (!element) return;
  const fresh = document.createElement("template");
  fresh.innerHTML = part.html;
  const added = "list" in element.dataset && !part.asked ? keepRows(element, fresh.content) : 0;
  tellTimes(fresh.content);
  Idiomorph.morph(element, fresh.innerHTML, {
    morphStyle: "innerHTML",
    callbacks: { beforeAttributeUpdated: keepsOwnState },
  });
  htmx.process(element);
  countTicked();
  offerRows(element, part, added);
  document.dispatchEvent(new Event("forager:updated"));
}

// a list keeps its rows in place: new ones are shown when they are asked for
function keepRows(element, fresh) {
  const rows = [...element.querySelectorAll("tbody tr[id]")];
  const body = fresh.querySelector("tbody");
  const known = new Set(rows.map((row) => row.id));
  const added = body ? [...body.rows].filter((row) => row.id && !known.has(row.id)) : [];
  if (!rows.length || !added.length) return 0;
  const now = new Map([...body.rows].map((row) => [row.id, row]));
  body.replaceChildren(...rows.map((row) => now.get(row.id) ?? row.cloneNode(true)));
  return added.length;
}

function offerRows(element, part, added) {
  element.previousElementSibling?.matches(".pill") && element.previousElementSibling.remove();
  if (!added) return;
  const pill = document.createElement("button");
  pill.type = "button";
  pill.className = "plain pill";
  pill.textContent = `${added} new`;
  pill.addEventListener("click", () => swap({ ...part, asked: true }));
  element.before(pill);
}

// what a person opened, ticked, typed or sorted stays as it is
function keepsOwnState(attribute, element) {
  if (element.tagName === "TH" && ["tabindex", "class", "aria-sort"].includes(attribute)) return false;
  if (attribute === "open" && element.tagName === "DETAILS") return false;
  if (attribute === "checked" || attribute === "value") return element.type === "hidden" || element.tagName !== "INPUT";
  return true;
}

document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
addEventListener("pagehide", close);
addEventListener("pageshow", (event) => event.persisted && open());
// the stream may reload this page, and a reload would cut off an action or the way to its result
document.addEventListener("htmx:beforeRequest", (event) => {
  if (event.detail.requestConfig.verb === "post") close();
});
document.addEventListener("htmx:afterRequest", (event) => {
  const leaves = event.detail.xhr.getResponseHeader("HX-Redirect");
  if (event.detail.requestConfig.verb === "post" && !leaves) open();
});
addEventListener("submit", (event) => event.defaultPrevented || close());
document.addEventListener("htmx:pushedIntoHistory", open);

// --- notices after an action ----------------------------------------------------------------------

const notices = document.getElementById("notices");

function tell(text, kind) {
  const line = document.createElement("p");
  line.className = `notice ${kind}`;
  line.textContent = text;
  notices.append(line);
  fade(line);
}

function fade(line) {
  setTimeout(() => line.remove(), line.classList.contains("error") ? 12000 : 6000);
}

// an error of a form that a person filled in is shown in the form, which keeps its input
document.body.addEventListener("notice", (event) => {
  const { text, kind } = event.detail;
  const form = event.target.closest("form:has(.field)");
  if (!form || kind !== "error") return tell(text, kind);
  const line = document.createElement("p");
  line.className = "notice error";
  line.role = "alert";
  line.textContent = text;
  form.prepend(line);
});
document.addEventListener("htmx:beforeRequest", (event) => {
  event.target.querySelectorAll?.(":scope > .notice.error").forEach((line) => line.remove());
});
document.addEventListener("htmx:sendError", () => tell("The server cannot be reached.", "error"));
if (notices) notices.querySelectorAll(".notice").forEach(fade);

// --- questions before what cannot be undone -------------------------------------------------------

const dialog = document.getElementById("confirm");
const held = new Map();
let asked = null;

document.addEventListener("htmx:confirm", (event) => {
  if (!event.detail.question) return;
  event.preventDefault();
  document.getElementById("confirm-question").textContent = event.detail.question;
  const verb = event.detail.elt.dataset.verb || event.detail.triggeringEvent?.submitter?.textContent;
  document.getElementById("confirm-yes").textContent = verb || "Yes";
  asked = event.detail;
  dialog.showModal();
});

// not on "close", which comes a frame later, when the next question may be open already
dialog.addEventListener("submit", (event) => {
  if (event.submitter?.value === "yes") asked?.issueRequest(true);
  asked = null;
});

dialog.addEventListener("close", () => {
  const parts = [...held.values()];
  held.clear();
  parts.forEach(swap);
});

// --- ticking many rows ------------------------------------------------------------------------------

function countTicked() {
  for (const form of document.querySelectorAll("form[data-bulk]")) {
    const boxes = [...form.querySelectorAll('tbody input[type="checkbox"]')];
    const ticked = boxes.filter((box) => box.checked).length;
    for (const all of form.querySelectorAll("[data-all]")) {
      all.checked = ticked > 0 && ticked === boxes.length;
      all.indeterminate = ticked > 0 && ticked < boxes.length;
    }
    for (const count of form.querySelectorAll("[data-count]")) {
      count.textContent = ticked ? `${ticked} selected` : "Nothing selected";
    }
    for (const button of form.querySelectorAll("[data-many]")) button.disabled = ticked === 0;
  }
}

document.addEventListener("change", (event) => {
  if (event.target.matches?.("[data-all]")) {
    const form = event.target.closest("form[data-bulk]");
    for (const box of form.querySelectorAll('tbody input[type="checkbox"]')) {
      box.checked = event.target.checked;
    }
  }
  countTicked();
});

// a hidden field of a condition is neither checked by the browser nor sent
function disableHidden() {
  for (const input of document.querySelectorAll(".condition .field input")) {
    input.disabled = getComputedStyle(input.closest(".field")).display === "none";
  }
}

document.addEventListener("change", disableHidden);
document.addEventListener("htmx:afterSettle", disableHidden);

// a choice that takes effect at once
document.documentElement.classList.add("js");
document.addEventListener("change", (event) => {
  if (event.target.matches?.("[data-submit]")) event.target.form.requestSubmit();
});

// on a phone, filters are behind a button, so that the list begins on the first screen
for (const form of document.querySelectorAll("form.filters[method=get]:has(.field + .field)")) {
  const set = [...form.querySelectorAll(".field:not(.grow) :is(input, select)")].filter((input) =>
    input.type === "checkbox" ? input.checked : new URLSearchParams(location.search).get(input.name));
  const fold = document.createElement("button");
  fold.type = "button";
  fold.className = "plain fold";
  fold.textContent = set.length ? `Filters (${set.length})` : "Filters";
  fold.ariaExpanded = "false";
  fold.addEventListener("click", () => (fold.ariaExpanded = String(form.classList.toggle("is-open"))));
  form.classList.add("folds");
  form.prepend(fold);
}

// the page that the browser came from, if it is a page of this list
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("[data-back]");
  const from = URL.canParse(document.referrer) ? new URL(document.referrer) : null;
  if (!link || from?.origin !== location.origin || from.pathname !== location.pathname) return;
  event.preventDefault();
  history.back();
});

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-copy]");
  if (!button) return;
  navigator.clipboard?.writeText(document.getElementById(button.dataset.copy).textContent);
  button.textContent = "Copied";
});

tellTimes(document);
setInterval(() => document.hidden || tellTimes(document), 1000);
countTicked();
disableHidden();
open();
