// A figure of a table opens its samples, their interval, its counters and what its case stands for.
(() => {
  const source = document.getElementById("evidence");
  if (!source) return;
  const { shared, cases } = JSON.parse(source.textContent);
  const WIDTH = 600, HEIGHT = 110, EDGE = 10, LEFT = 64, BELOW = 18;
  const made = (tag, values, ...children) => {
    const node = Object.assign(document.createElement(tag), values);
    node.append(...children);
    return node;
  };
  const SPACE = made("div", { innerHTML: "<svg></svg>" }).firstChild.namespaceURI;
  const drawn = (tag, values, text) => {
    const node = document.createElementNS(SPACE, tag);
    Object.entries(values).forEach(([name, value]) => node.setAttribute(name, value));
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const plural = (number, one, many) => `${number} ${number === 1 ? one : many}`;
  const spaced = (number, unit) => unit === "%" ? `${number}%` : `${number} ${unit}`.trim();

  // Samples by process: process -> [[round, value], ...], in their order.
  const byProcess = (samples, places) => {
    const found = new Map();
    samples.forEach((value, i) => {
      const [process, round] = places[i];
      found.set(process, [...found.get(process) ?? [], [round, value]]);
    });
    return found;
  };

  // A point for each sample: left to right by process and round, upwards by value; the interval as a band.
  const strip = (title, processes, unit, [low, high]) => {
    const values = [...processes.values()].flat().map(([, value]) => value);
    const ends = [...values, ...(low === undefined ? [] : [low, high])];
    const least = Math.min(...ends), range = Math.max(...ends) - least || 1;
    const y = value => HEIGHT - EDGE - BELOW - (value - least) / range * (HEIGHT - 2 * EDGE - BELOW);
    const step = (WIDTH - LEFT - EDGE) / (values.length + processes.size - 1);
    const svg = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `Samples of ${title}` });
    if (low !== undefined) {
      const band = { x: LEFT, width: WIDTH - LEFT - EDGE, y: y(high), height: Math.max(1, y(low) - y(high)) };
      svg.append(drawn("rect", { class: "band", ...band }));
    }
    [Math.max(...ends), least].forEach(value =>
      svg.append(drawn("text", { x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, spaced(value, unit))));
    let x = LEFT + step / 2;
    processes.forEach((own, process) => {
      svg.append(drawn("text", { x: x - 4, y: HEIGHT - 4 }, `process ${process}`));
      own.forEach(([round, value]) => {
        const point = drawn("circle", { cx: x, cy: y(value), r: 4 });
        point.append(drawn("title", {}, `process ${process}, round ${round}: ${spaced(value, unit)}`));
        svg.append(point);
        x += step;
      });
      x += step;
    });
    return svg;
  };

  const content = (title, figure, place) => {
    const [unit, samples, ends, ...indices] = cases[place];
    const [places, names, counts, meaning, query] = indices.map(index => shared[index]);
    const processes = byProcess(samples, places);
    const sure = ends.length ? `, ${ends[2]}% interval ${spaced(ends[0], unit)} to ${spaced(ends[1], unit)}` : "";
    const counted = `${plural(samples.length, "sample", "samples")} in ${plural(processes.size, "process", "processes")}`;
    const listed = [...processes].map(([process, own]) =>
      made("div", {}, made("dt", { textContent: `Process ${process}${unit && `, ${unit}`}` }),
        made("dd", { textContent: own.map(([, value]) => value).join(", ") })));
    const work = names.map((name, i) =>
      made("div", {}, made("dt", { textContent: name }),
        made("dd", { textContent: counts[i].toLocaleString("en") })));
    return [
      ...(meaning ? [made("p", { textContent: meaning })] : []),
      ...(query ? [made("pre", { textContent: query })] : []),
      made("p", { textContent: `Median ${figure}${sure}; ${counted}, by round:` }),
      strip(title, processes, unit, ends),
      made("dl", {}, ...listed, ...work),
    ];
  };

  let opened = null;
  const close = () => {
    if (!opened) return;
    opened.panel.remove();
    opened.button.setAttribute("aria-expanded", "false");
    opened = null;
  };
  const open = (button, box, title, figure, place) => {
    close();
    const shut = made("button", { type: "button", className: "shut", textContent: "Close" });
    const panel = made("div", { className: "samples" },
      made("h3", { textContent: title }), shut, ...content(title, figure, place));
    panel.setAttribute("role", "region");
    panel.setAttribute("aria-label", title);
    const leave = () => { close(); button.focus(); VIEW.changed("case"); };
    shut.addEventListener("click", leave);
    panel.addEventListener("keydown", event => { if (event.key === "Escape") leave(); });
    box.after(panel);
    button.setAttribute("aria-expanded", "true");
    opened = { button, panel, title };
    shut.focus({ preventScroll: true });
    panel.scrollIntoView({ block: "nearest" });
  };

  const openers = new Map();
  document.querySelectorAll("td[data-case]").forEach(cell => {
    const table = cell.closest("table"), box = table.parentElement;
    const head = table.tHead.rows[0].cells[cell.cellIndex].textContent;
    const names = [...cell.parentElement.cells].slice(0, 2).map(each => each.textContent.trim());
    const title = `${box.getAttribute("aria-label")}: ${[...names, head].join(", ")}`;
    const text = [...cell.childNodes].find(node => node.nodeType === Node.TEXT_NODE && node.data.trim());
    const figure = text.data.trim();
    const button = made("button", { type: "button", className: "open", textContent: figure });
    button.setAttribute("aria-label", `${figure}: samples of ${title}`);
    button.setAttribute("aria-expanded", "false");
    openers.set(title, () => open(button, box, title, figure, Number(cell.dataset.case)));
    button.addEventListener("click", () => {
      if (opened?.button === button) close();
      else openers.get(title)();
      VIEW.changed("case");
    });
    text.replaceWith(" ", button);
  });
  VIEW.parts.set("case", { get: () => opened?.title ?? "", set: title => (openers.get(title) ?? close)() });
})();
