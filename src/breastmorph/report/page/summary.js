const body = document.querySelector("tbody"), rows = [...body.rows], form = document.querySelector("form");
const value = (row, column, kind) => {
  const cell = row.cells[column], text = cell.dataset.value ?? cell.textContent;
  return kind === "text" ? text : text === "" ? NaN : Number(text);
};
document.querySelectorAll("thead button").forEach(button => button.addEventListener("click", () => {
  const head = button.parentElement, kind = button.dataset.kind;
  const down = head.ariaSort === "none" ? kind === "number" : head.ariaSort === "ascending";
  document.querySelectorAll("thead th[aria-sort]").forEach(other => other.setAttribute("aria-sort", "none"));
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const keyed = rows.map(row => [value(row, head.cellIndex, kind), row]);
  const order = (a, b) => kind === "text" ? a.localeCompare(b, undefined, {numeric: true}) : a - b;
  keyed.sort(([a], [b]) => Number.isNaN(a) || Number.isNaN(b)  // rows without a value come last either way
    ? Number.isNaN(a) - Number.isNaN(b) : (down ? -1 : 1) * order(a, b));
  body.append(...keyed.map(([, row]) => row));
}));
const show = () => {
  const state = form.elements.show.value, part = form.elements.part.value.toLowerCase();
  for (const row of rows) {
    row.hidden = (state !== "all" && row.className !== state)
      || !row.cells[1].textContent.toLowerCase().includes(part);
  }
};
form.addEventListener("input", show);
form.addEventListener("submit", event => event.preventDefault());
show();
