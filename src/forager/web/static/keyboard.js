// Keyboard: a command palette (Ctrl-K), search (/) and the list of shortcuts (?).

const palette = document.getElementById("palette");
const query = document.getElementById("palette-query");
const list = document.getElementById("palette-list");
const shortcuts = document.getElementById("shortcuts");
let entries = [];
let chosen = 0;
// what the server found for which text
let found = { text: "", entries: [] };
let lookup = null;

function pages() {
  const links = document.querySelectorAll(".side nav a, #palette-more a");
  return [...links].map((link) => ({ name: link.textContent.trim(), href: link.getAttribute("href") }));
}

// what can be done with any text
function searches(text) {
  if (!text) return [];
  const value = encodeURIComponent(text);
  const found = [
    { name: `Search pages for “${text}”`, href: `/search?q=${value}` },
    { name: `Find jobs with “${text}”`, href: `/jobs?q=${value}` },
    { name: `Find products with “${text}”`, href: `/products?q=${value}` },
  ];
  return found;
}

// a URL, also without its scheme
function explanation(text) {
  const isUrl = /^(https?:\/\/\S+|[\w-]+(\.[\w-]+)+(:\d+)?\/\S*)$/.test(text);
  return isUrl ? [{ name: `Explain ${text}`, href: `/explain?url=${encodeURIComponent(text)}` }] : [];
}

// sources, jobs, hosts, products and settings; an answer to an earlier text is ignored
function look() {
  clearTimeout(lookup);
  const text = query.value.trim();
  if (!text || explanation(text).length) return;
  lookup = setTimeout(async () => {
    const answer = await fetch(`/palette/file?q=${encodeURIComponent(text.slice(0, 200))}`).catch(() => null);
    if (!answer?.ok) return;
    found = { text, entries: await answer.json() };
    if (query.value.trim() === text) draw();
  }, 120);
}

function draw() {
  const text = query.value.trim();
  const words = text.toLowerCase().split(/\s+/);
  const fitting = pages().filter((page) => words.every((word) => page.name.toLowerCase().includes(word)));
  const known = found.text === text ? found.entries : [];
  entries = [...explanation(text), ...fitting, ...known, ...searches(text)];
  chosen = Math.min(chosen, Math.max(0, entries.length - 1));
  list.replaceChildren(...entries.map(item));
  query.setAttribute("aria-activedescendant", entries.length ? `palette-${chosen}` : "");
}

function item(entry, place) {
  const line = document.createElement("li");
  line.id = `palette-${place}`;
  line.role = "option";
  line.ariaSelected = String(place === chosen);
  line.textContent = entry.name;
  line.addEventListener("click", () => take(entry));
  if (place === chosen) requestAnimationFrame(() => line.scrollIntoView({ block: "nearest" }));
  return line;
}

// go there, or do it: the answer is a notice, or another page
function take(entry) {
  if (!entry.fields) return location.assign(entry.href);
  palette.close();
  htmx.ajax("POST", entry.href, { source: document.body, swap: "none", values: entry.fields });
}

function openPalette() {
  query.value = "";
  chosen = 0;
  draw();
  palette.showModal();
}

query.addEventListener("input", () => { chosen = 0; draw(); look(); });
query.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step && entries.length) {
    chosen = (chosen + step + entries.length) % entries.length;
    draw();
    event.preventDefault();
  }
});
palette.addEventListener("submit", (event) => {
  if (event.submitter?.value === "no") return;
  event.preventDefault();
  if (entries[chosen]) take(entries[chosen]);
});
for (const dialog of [palette, shortcuts]) {
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
}
for (const button of document.querySelectorAll("[data-palette]")) button.addEventListener("click", openPalette);

function isTyping(target) {
  return target.isContentEditable || target.matches?.("input:not([type=checkbox]), textarea, select");
}

// the first link of each row of the lists of a page
function rowLinks() {
  const rows = document.querySelectorAll("main tbody tr");
  return [...rows].map((row) => row.querySelector("td:not(.check) a[href]")).filter(Boolean);
}

function moveInList(step) {
  const links = rowLinks();
  const at = links.findIndex((link) => link === document.activeElement);
  links[Math.max(0, Math.min(links.length - 1, at + step))]?.focus();
}

function focusSearch() {
  const field = document.querySelector("main input[type=search]");
  if (field) field.focus();
  else location.assign("/search");
}

document.addEventListener("keydown", (event) => {
  if (document.querySelector("dialog[open]")) return;
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") openPalette();
  else if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  else if (event.key === "/") focusSearch();
  else if (event.key === "?") shortcuts.showModal();
  else if (event.key === "j") moveInList(1);
  else if (event.key === "k") moveInList(-1);
  else return;
  event.preventDefault();
});

// --- rows lead where their first link leads -----------------------------------------------------------

document.addEventListener("click", (event) => {
  const row = event.target.closest?.("main tbody tr");
  if (!row || event.target.closest("a, button, input, label, select, summary, form")) return;
  if (String(getSelection())) return;
  row.querySelector("td:not(.check) a[href^='/']")?.click();
});

// --- numbers of a chart under the pointer -----------------------------------------------------------

const tip = document.getElementById("tip");

document.addEventListener("pointermove", (event) => {
  const column = event.target.closest?.(".chart .hover");
  tip.hidden = !column;
  if (!column) return;
  // the native tooltip would come too, a second later
  if (!column.dataset.tip) {
    column.dataset.tip = column.querySelector("title").textContent;
    column.querySelector("title").remove();
  }
  tip.textContent = column.dataset.tip;
  const left = Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8);
  tip.style.transform = `translate(${Math.max(8, left)}px, ${event.clientY + 16}px)`;
});
