"use strict";
// What a reader chooses: name -> how it is read and set as text, empty for nothing; `changed` is told of a choice.
const VIEW = { parts: new Map(), changed: () => {} };
// Tables sort, filter and are downloaded as CSV and JSON. Without this script the page has them as they are.
(() => {
  const SIZES = {
    ns: 1e-9, "µs": 1e-6, ms: 1e-3, s: 1, minutes: 60, hours: 3600, days: 86400,
    B: 1, KB: 2 ** 10, MB: 2 ** 20, GB: 2 ** 30, k: 1e3, M: 1e6, G: 1e9,
  };
  const FEWEST_TO_FILTER = 4;

  // What a cell says, without its mark and small print.
  const said = cell => [...cell.childNodes]
    .filter(node => !node.classList || !(node.classList.contains("mark") || node.classList.contains("detail")))
    .map(node => node.textContent).join("").trim();
  const detail = cell => cell.querySelector(".detail")?.textContent.trim() ?? "";
  // The number of a figure in the unit that all have in common; NaN for none.
  const number = text => {
    const found = /([-+]?[\d,]*\.?\d+)\s*([^\s\d[(]*)/.exec(text);
    return found ? parseFloat(found[1].replaceAll(",", "")) * (SIZES[found[2]] ?? 1) : NaN;
  };
  // What a figure is sorted by: what its cell says of itself, or the number that it shows.
  const value = cell => cell.dataset.order === undefined ? number(said(cell)) : parseFloat(cell.dataset.order);
  const compare = (first, second, isFigure, sign) => {
    if (!isFigure) return sign * said(first).localeCompare(said(second), undefined, { numeric: true });
    const [a, b] = [value(first), value(second)];
    if (isNaN(a) || isNaN(b)) return isNaN(a) - isNaN(b);
    return a === b ? 0 : sign * (a - b);
  };
  const made = (tag, values) => Object.assign(document.createElement(tag), values);

  const sortable = (table, title, heads, rows) => {
    let chosen = "";
    // Text such as "descending icebench", or nothing for the first order.
    const sort = text => {
      const [order, ...words] = text.split(" ");
      const place = heads.findIndex(head => head.textContent === words.join(" "));
      const isKnown = place >= 0 && ["ascending", "descending"].includes(order);
      chosen = isKnown ? text : "";
      heads.forEach(each => each.removeAttribute("aria-sort"));
      if (isKnown) heads[place].setAttribute("aria-sort", order);
      const sign = order === "descending" ? -1 : 1;
      const isFigure = isKnown && rows.some(row => row.cells[place].classList.contains("figure"));
      const sorted = isKnown
        ? rows.toSorted((a, b) => compare(a.cells[place], b.cells[place], isFigure, sign))
        : rows;
      table.tBodies[0].append(...sorted);
    };
    heads.forEach(head => {
      const button = made("button", { type: "button", className: "sort", textContent: head.textContent });
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const now = head.getAttribute("aria-sort");
        const order = { ascending: "descending", descending: "" }[now] ?? "ascending";
        sort(order && `${order} ${head.textContent}`);
        VIEW.changed(`sort ${title}`);
      });
    });
    VIEW.parts.set(`sort ${title}`, { get: () => chosen, set: sort });
  };

  const filterable = (tools, title, rows) => {
    const input = made("input", { type: "search", placeholder: "Filter" });
    input.setAttribute("aria-label", `Filter ${title}`);
    const count = made("output", {});
    const filter = () => {
      const words = input.value.toLowerCase().split(/\s+/);
      rows.forEach(row => {
        const text = [...row.cells].map(cell => cell.textContent).join(" ").toLowerCase();
        row.hidden = !words.every(word => text.includes(word));
      });
      const left = rows.filter(row => !row.hidden).length;
      count.textContent = left < rows.length ? `${left} of ${rows.length} rows` : "";
    };
    input.addEventListener("input", () => { filter(); VIEW.changed(`filter ${title}`); });
    VIEW.parts.set(`filter ${title}`, { get: () => input.value, set: text => { input.value = text; filter(); } });
    tools.append(input, count);
  };

  // The rows that are shown, in their order; small print has columns of its own.
  const records = (table, names) => [...table.tBodies[0].rows].filter(row => !row.hidden).map(row => {
    const found = {};
    names.forEach((name, place) => {
      const cell = row.cells[place];
      found[name || "name"] = said(cell);
      if (detail(cell)) found[`${name || "name"} (detail)`] = detail(cell);
    });
    return found;
  });
  const quoted = text => /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  const csv = found => {
    const names = [...new Set(found.flatMap(Object.keys))];
    return [names, ...found.map(row => names.map(name => row[name] ?? ""))]
      .map(line => line.map(quoted).join(",") + "\n").join("");
  };
  const FORMS = {
    CSV: ["text/csv", csv],
    JSON: ["application/json", found => JSON.stringify(found, null, 1) + "\n"],
  };
  const downloadable = (tools, table, title, names) => Object.entries(FORMS).forEach(([form, [type, text]]) => {
    const button = made("button", { type: "button", textContent: form });
    button.setAttribute("aria-label", `Download ${title} as ${form}`);
    button.addEventListener("click", () => {
      const href = URL.createObjectURL(new Blob([text(records(table, names))], { type }));
      const name = title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
      made("a", { href, download: `${name}.${form.toLowerCase()}` }).click();
      setTimeout(() => URL.revokeObjectURL(href), 1000);
    });
    tools.append(button);
  });

  document.querySelectorAll(".scroll > table").forEach(table => {
    const box = table.parentElement, title = box.getAttribute("aria-label");
    const heads = [...table.tHead.rows[0].cells], rows = [...table.tBodies[0].rows];
    const names = heads.map(head => head.textContent);
    const tools = made("div", { className: "tools" });
    if (rows.length > 1) sortable(table, title, heads, rows);
    if (rows.length >= FEWEST_TO_FILTER) filterable(tools, title, rows);
    downloadable(tools, table, title, names);
    box.before(tools);
  });
})();
