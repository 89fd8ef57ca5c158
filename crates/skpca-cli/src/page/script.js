"use strict";
// Sorting: a click on a heading sorts the rows by it, another click reverses the order.
for (const table of document.querySelectorAll("table.models")) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, k) => heading.querySelector("button").addEventListener("click", () => {
    const up = heading.getAttribute("aria-sort") !== "ascending";
    headings.forEach((other) => other.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    const numbers = heading.dataset.sort === "number";
    const key = (row) => (numbers ? parseFloat(row.cells[k].dataset.value) : row.cells[k].textContent);
    const order = (a, b) => {
      const [x, y] = [key(a), key(b)];
      if (!numbers) return x.localeCompare(y, undefined, { numeric: true });
      // Unknown values come last in either order.
      if (Number.isNaN(x) || Number.isNaN(y)) return up ? Number.isNaN(x) - Number.isNaN(y) : Number.isNaN(y) - Number.isNaN(x);
      return x - y;
    };
    const rows = [...table.tBodies[0].rows].sort((a, b) => (up ? order(a, b) : order(b, a)));
    table.tBodies[0].append(...rows);
  }));
}
// Tips: show the title of a mark immediately, and on touch. Without the script, the browser shows titles itself.
const tip = document.getElementById("tip");
const place = (event) => {
  tip.style.left = `${Math.max(0, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${Math.max(0, Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8))}px`;
};
document.addEventListener("pointerover", (event) => {
  const title = event.target.closest(".marks > *")?.querySelector("title");
  tip.hidden = !title;
  if (title) {
    tip.textContent = title.textContent;
    place(event);
  }
});
document.addEventListener("pointermove", (event) => {
  if (!tip.hidden) place(event);
});
