// Keyboard: a command palette (Ctrl-K), search (/) and the list of shortcuts (?).

const palette = document.getElementById("palette");
const query = document.getElementById("palette-query");
const list = document.getElementById("palette-list");
const shortcuts = document.getElementById("shortcuts");
let entries = [];
let chosen = 0;

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
  if (/^https?:\/\//.test(text)) found.unshift({ name: `Explain ${text}`, href: `/explain?url=${value}` });
  return found;
}

function draw() {
  const text = query.value.trim();
  const words = text.toLowerCase().split(/\s+/);
  const fitting = pages().filter((page) => words.every((word) => page.name.toLowerCase().includes(word)));
  entries = [...fitting, ...searches(text)];
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
  line.addEventListener("click", () => location.assign(entry.href));
  if (place === chosen) requestAnimationFrame(() => line.scrollIntoView({ block: "nearest" }));
  return line;
}

function openPalette() {
  query.value = "";
  chosen = 0;
  draw();
  palette.showModal();
}

query.addEventListener("input", () => { chosen = 0; draw(); });
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
  if (entries[chosen]) location.assign(entries[chosen].href);
});
for (const dialog of [palette, shortcuts]) {
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
}
for (const button of document.querySelectorAll("[data-palette]")) button.addEventListener("click", openPalette);

function isTyping(target) {
  return target.isContentEditable || target.matches?.("input:not([type=checkbox]), textarea, select");
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
  else return;
  event.preventDefault();
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
