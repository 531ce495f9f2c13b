"use strict";
(() => {
  const data = JSON.parse(document.getElementById("report-data").textContent);
  const byId = (id) => document.getElementById(id);
  const make = (tag, text, className) => {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    if (className) node.className = className;
    return node;
  };
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const percent = (x) => `${(100 * x).toFixed(x < 0.0995 ? 1 : 0)}%`;
  const short = (x) => (Number.isNaN(x) ? "missing" : Number(x.toPrecision(4)).toString());
  const redraw = [];

  // The page follows the system's choice of light or dark until the reader changes it.
  byId("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    root.dataset.theme = (root.dataset.theme || system) === "dark" ? "light" : "dark";
    redraw.forEach((draw) => draw());
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw.forEach((draw) => draw()));

  const TYPES = { uint8: Uint8Array, uint16: Uint16Array, int32: Int32Array, float32: Float32Array };
  const unpacked = (column) => {
    const bytes = Uint8Array.from(atob(column.data), (c) => c.charCodeAt(0));
    return new TYPES[column.type](bytes.buffer);
  };

  // The marks of classes differ in form as well as in colour.
  const FORMS = [
    (g, x, y, r) => g.arc(x, y, r, 0, 7),
    (g, x, y, r) => { g.moveTo(x, y - 1.3 * r); g.lineTo(x + 1.2 * r, y + r); g.lineTo(x - 1.2 * r, y + r); g.closePath(); },
    (g, x, y, r) => g.rect(x - 0.9 * r, y - 0.9 * r, 1.8 * r, 1.8 * r),
    (g, x, y, r) => { g.moveTo(x, y - 1.4 * r); g.lineTo(x + 1.4 * r, y); g.lineTo(x, y + 1.4 * r); g.lineTo(x - 1.4 * r, y); g.closePath(); },
    (g, x, y, r) => { g.moveTo(x, y + 1.3 * r); g.lineTo(x + 1.2 * r, y - r); g.lineTo(x - 1.2 * r, y - r); g.closePath(); },
  ];
  const mark = (g, label, x, y, r) => {
    g.beginPath();
    FORMS[label % FORMS.length](g, x, y, r);
    g.fillStyle = colour(`--c${label % 8}`);
    g.fill();
  };

  function map(rows) {
    const canvas = byId("map"), said = byId("said"), input = byId("row"), wrongOnly = byId("wrong");
    const points = unpacked(rows.points), labels = unpacked(rows.labels), predicted = unpacked(rows.predicted);
    const probability = unpacked(rows.probability), values = unpacked(rows.values), against = unpacked(rows.against);
    const near = unpacked(rows.near), distances = unpacked(rows.distances);
    const reasons = unpacked(rows.reasons), amounts = unpacked(rows.amounts);
    const order = Array.from({ length: rows.n }, (_, i) => i).sort((a, b) => points[2 * a] - points[2 * b]);
    const numbers = unpacked(rows.numbers), place = new Map(Array.from(numbers, (number, i) => [number, i]));
    let chosen = -1, hovered = -1, places = [];
    const visible = (i) => !wrongOnly.checked || (rows.labelled && labels[i] !== predicted[i]);
    const shown = rows.labelled ? labels : predicted;

    function draw() {
      const scale = window.devicePixelRatio || 1, box = canvas.getBoundingClientRect();
      const width = box.width, height = box.height, margin = 16;
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
      const g = canvas.getContext("2d");
      g.scale(scale, scale);
      let right = 1, top = 1;
      for (let i = 0; i < rows.n; i++) { right = Math.max(right, points[2 * i]); top = Math.max(top, points[2 * i + 1]); }
      const factor = Math.min((width - 2 * margin) / right, (height - 2 * margin) / top);
      const left = (width - factor * right) / 2, base = (height + factor * top) / 2;
      places = order.map((i) => [left + factor * points[2 * i], base - factor * points[2 * i + 1], i]);
      const radius = rows.n > 5000 ? 2 : rows.n > 800 ? 3 : 4;
      g.globalAlpha = rows.n > 5000 ? 0.6 : 0.8;
      for (const [x, y, i] of places) if (visible(i)) mark(g, shown[i], x, y, radius);
      g.globalAlpha = 1;
      for (const [x, y, i] of places) {
        if (i !== chosen && i !== hovered) continue;
        g.beginPath();
        g.arc(x, y, radius + 5, 0, 7);
        g.lineWidth = 2.5;
        g.strokeStyle = colour("--ink");
        g.stroke();
      }
    }

    function at(event) {
      const box = canvas.getBoundingClientRect();
      const x = event.clientX - box.left, y = event.clientY - box.top;
      let best = -1, closest = 18 * 18;
      for (const [px, py, i] of places) {
        const d = (px - x) ** 2 + (py - y) ** 2;
        if (d < closest && visible(i)) { closest = d; best = i; }
      }
      return best;
    }

    const head = (i) => {
      const right = rows.labelled ? (labels[i] === predicted[i] ? ", correctly" : `, but its class is “${data.classes[labels[i]]}”`) : "";
      return `Row ${numbers[i]}: classified as “${data.classes[predicted[i]]}” (probability ${percent(probability[i] / 255)})${right}`;
    };

    function explain(i) {
      chosen = i;
      input.value = numbers[i];
      said.replaceChildren(make("h3", head(i)));
      if (i < rows.explained) said.append(...why(i));
      else said.append(make("p", "The reasons for this row are not part of this page.", "note"));
      said.append(valuesOf(i));
      draw();
    }

    function why(i) {
      const own = data.classes[predicted[i]], other = data.classes[against[i]];
      const first = make("p", `Nearest training row of “${own}”: number ${near[2 * i]}, squared distance ${short(distances[2 * i])}. `
        + `Nearest of “${other}”: number ${near[2 * i + 1]}, ${short(distances[2 * i + 1])}.`);
      const table = make("table"), body = make("tbody");
      table.append(make("caption", `Terms that increase (to the right) or decrease (to the left) the distance to “${other}” compared with “${own}”`), body);
      let largest = 0;
      for (let k = 0; k < rows.n_reasons; k++) largest = Math.max(largest, Math.abs(amounts[i * rows.n_reasons + k]));
      for (let k = 0; k < rows.n_reasons; k++) {
        const amount = amounts[i * rows.n_reasons + k];
        if (amount === 0) continue;
        const line = make("tr"), name = make("th", rows.terms[reasons[i * rows.n_reasons + k]]), cell = make("td"), bar = make("div", undefined, "reason");
        name.scope = "row";
        const part = make("span", undefined, amount > 0 ? "for" : "against");
        part.style.width = `${(100 * Math.abs(amount)) / largest}%`;
        bar.append(part);
        cell.append(bar);
        line.append(name, cell, make("td", (amount > 0 ? "+" : "") + short(amount), "number"));
        body.append(line);
      }
      return [first, table];
    }

    function valuesOf(i) {
      const table = make("table"), body = make("tbody"), m = rows.variables.length;
      table.append(make("caption", "Values of the row"), body);
      rows.variables.forEach((name, j) => {
        const line = make("tr"), cell = make("th", name);
        cell.scope = "row";
        line.append(cell, make("td", short(values[i * m + j]), "number"));
        body.append(line);
      });
      return table;
    }

    function step(by) {
      let i = order.indexOf(chosen);
      for (let k = 0; k < order.length; k++) {
        i = (i + by + order.length) % order.length;
        if (visible(order[i])) { explain(order[i]); return; }
      }
    }

    canvas.addEventListener("mousemove", (event) => {
      const i = at(event);
      if (i === hovered) return;
      hovered = i;
      canvas.title = i < 0 ? "" : head(i);
      draw();
    });
    canvas.addEventListener("mouseleave", () => { hovered = -1; draw(); });
    canvas.addEventListener("click", (event) => { const i = at(event); if (i >= 0) explain(i); });
    canvas.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Enter: 1 }[event.key];
      if (by === undefined) return;
      event.preventDefault();
      step(by);
    });
    input.addEventListener("change", () => {
      const i = place.get(Number(input.value));
      if (i !== undefined) explain(i);
    });
    wrongOnly.disabled = !rows.labelled;
    wrongOnly.addEventListener("change", draw);
    legend(shown);
    new ResizeObserver(draw).observe(canvas);
    redraw.push(draw, () => legend(shown));
    draw();
  }

  function legend(shown) {
    const present = [...new Set(shown)].sort((a, b) => a - b);
    byId("legend").replaceChildren(...present.map((label) => {
      const item = make("span"), icon = make("canvas");
      icon.width = icon.height = 28;
      icon.style.width = icon.style.height = "14px";
      icon.setAttribute("aria-hidden", "true");
      const g = icon.getContext("2d");
      g.scale(2, 2);
      mark(g, label, 7, 7, 5);
      item.append(icon, data.classes[label]);
      return item;
    }));
  }

  function path(stages) {
    const slider = byId("step"), svg = byId("curve"), NS = "http://www.w3.org/2000/svg";
    const width = 480, height = 240, left = 40, bottom = 28, top = 10, right = 10;
    const part = (tag, attributes, text) => {
      const node = document.createElementNS(NS, tag);
      for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
      if (text !== undefined) node.textContent = text;
      svg.append(node);
      return node;
    };
    const last = stages[stages.length - 1].step;
    const x = (step) => left + ((width - left - right) * step) / last;
    const y = (share) => height - bottom - (height - bottom - top) * Math.min(1, share);
    for (const value of [0, 0.25, 0.5, 0.75, 1]) {
      part("line", { class: "grid", x1: x(0), x2: x(last), y1: y(value), y2: y(value) });
      part("text", { class: "tick", x: left - 5, y: y(value) + 4, "text-anchor": "end" }, value);
    }
    part("text", { class: "tick", x: x(last), y: height - 8, "text-anchor": "end" }, `${last} accepted steps`);
    const line = (className, value) => part("polyline", {
      class: `curve ${className}`,
      points: stages.map((stage) => `${x(stage.step)},${y(value(stage))}`).join(" "),
    });
    const first = stages[0].loss || 1;
    line("colour2", (stage) => stage.loss / first);
    if (stages[0].error !== null) line("colour1", (stage) => stage.error);
    const here = part("line", { class: "diagonal", y1: y(0), y2: y(1) });

    function show() {
      const stage = stages[Number(slider.value)];
      byId("stepsaid").textContent = `${stage.step} of ${last}`;
      slider.setAttribute("aria-valuetext", `${stage.step} steps, ${stage.variables} variables`);
      here.setAttribute("x1", x(stage.step));
      here.setAttribute("x2", x(stage.step));
      const figures = [["variables", stage.variables], ["terms", stage.terms], ["loss", short(stage.loss)]];
      if (stage.error !== null) figures.push(["errors", percent(stage.error)]);
      byId("stage").replaceChildren(...figures.map(([name, value]) => {
        const item = make("div");
        item.append(make("dt", name), make("dd", value));
        return item;
      }));
      const largest = stage.shares.length ? stage.shares[0][1] : 1;
      byId("shares").replaceChildren(...stage.shares.map(([name, share]) => {
        const row = make("tr"), head = make("th", name), cell = make("td"), bar = make("span", undefined, "bar"), fill = make("span", undefined, "alone");
        head.scope = "row";
        fill.style.width = `${(100 * share) / largest}%`;
        bar.append(fill);
        cell.append(bar);
        row.append(head, cell, make("td", percent(share), "number"));
        return row;
      }));
    }
    slider.addEventListener("input", show);
    show();
  }

  if (data.rows) map(data.rows);
  if (data.stages.length) path(data.stages);
})();
