"use strict";
{
  const value = (row, column) => {
    const cell = row.cells[column];
    const order = cell.dataset.order ?? cell.textContent.trim();
    return order !== "" && !Number.isNaN(Number(order)) ? Number(order) : order.toLowerCase();
  };
  // What has no value comes last in either direction.
  const compare = (a, b, sign) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
    return sign * (typeof a === "number" ? a - b : a.localeCompare(b));
  };
  for (const table of document.querySelectorAll("table")) {
    const headings = [...table.tHead.rows[0].cells];
    headings.forEach((heading, column) => heading.querySelector("button").addEventListener("click", () => {
      const ascending = heading.getAttribute("aria-sort") !== "ascending";
      for (const other of headings) other.setAttribute("aria-sort", "none");
      heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      const sign = ascending ? 1 : -1;
      table.append(...[...table.tBodies].sort((a, b) => compare(value(a.rows[0], column), value(b.rows[0], column), sign)));
    }));
  }
  const search = document.getElementById("search");
  const bodies = [...document.querySelectorAll("tbody")].map((body) => [body, body.textContent.toLowerCase()]);
  const show = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const [body, text] of bodies) body.hidden = !words.every((word) => text.includes(word));
    const shown = (id) => document.querySelectorAll(`#${id} tbody:not([hidden])`).length;
    document.getElementById("count").textContent = words.length
      ? `Found: cameras and modes ${shown("cameras")}, clips that do not count ${shown("clips")}` : "";
  };
  search.addEventListener("input", show);
  show();
}
