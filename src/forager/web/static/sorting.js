// Sorts lists that are on one page by the column whose heading is chosen; longer ones are sorted by the server.

const UNITS = {
  ms: 1e-3, s: 1, min: 60, h: 3600, d: 86400, B: 1, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12, k: 1e3, M: 1e6, G: 1e9,
};
const AMOUNT = /^([A-Z]{3}\s)?([+-]?[\d,.]+)\s?(?:%|(ms|min|kB|MB|GB|TB|[shdBkMG]))?((?:\s\d+ (?:min|s|h|d))*)(?:\/\d+)?$/;
// the heading and direction of each list that was sorted
const orders = new Map();

function key(cell) {
  const time = cell.querySelector("time");
  if (time) return { kind: "", value: Date.parse(time.dateTime) };
  const text = cell.textContent.trim();
  const found = AMOUNT.exec(text);
  if (!found) return { kind: "text", value: text.toLowerCase() };
  const [, currency = "", number, unit, rest] = found;
  const more = [...rest.matchAll(/(\d+) (\w+)/g)].reduce((sum, [, count, name]) => sum + count * UNITS[name], 0);
  return { kind: currency, value: Number(number.replaceAll(",", "")) * (UNITS[unit] ?? 1) + more };
}

function compare(a, b) {
  if (a.kind !== b.kind) return a.kind < b.kind ? -1 : 1;
  return a.value < b.value ? -1 : Number(a.value > b.value);
}

function isEmpty(cell) {
  return !cell || ["", "–"].includes(cell.textContent.trim());
}

function sort(table, place, descending) {
  const rows = [...table.tBodies[0].rows].map((row) => ({ row, cell: row.cells[place] }));
  const known = rows.filter(({ cell }) => !isEmpty(cell)).map((each) => ({ ...each, key: key(each.cell) }));
  known.sort((a, b) => compare(a.key, b.key) * (descending ? -1 : 1));
  const order = [...known, ...rows.filter(({ cell }) => isEmpty(cell))].map(({ row }) => row);
  // rows that are in place already keep the focus
  if (order.some((row, at) => row !== table.tBodies[0].rows[at])) table.tBodies[0].append(...order);
}

function headings(table) {
  const isWhole = !table.closest(".card, main > div")?.querySelector(".cut a");
  const isLong = table.tBodies[0]?.rows.length > 1;
  if (!isWhole || !isLong || table.querySelector("a.sort")) return [];
  return [...table.tHead.rows[0].cells].filter((cell) => cell.textContent.trim() && !cell.firstElementChild);
}

function prepareSorting() {
  for (const table of document.querySelectorAll("main table.stacks:has(thead)")) {
    const order = orders.get(table.parentElement.ariaLabel);
    for (const cell of headings(table)) {
      cell.tabIndex = 0;
      cell.classList.add("sortable");
      if (order?.name !== cell.textContent) cell.removeAttribute("aria-sort");
      else {
        cell.ariaSort = order.descending ? "descending" : "ascending";
        sort(table, cell.cellIndex, order.descending);
      }
    }
  }
}

function choose(event) {
  const cell = event.target.closest?.("th.sortable");
  if (!cell || (event.type === "keydown" && event.key !== "Enter")) return;
  const list = cell.closest("table").parentElement.ariaLabel;
  orders.set(list, { name: cell.textContent, descending: cell.ariaSort === "ascending" });
  prepareSorting();
}

document.addEventListener("click", choose);
document.addEventListener("keydown", choose);
document.addEventListener("forager:updated", prepareSorting);
prepareSorting();
