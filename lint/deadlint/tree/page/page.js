"use strict";
(() => {
  const entries = JSON.parse(document.getElementById("data").textContent);
  const HEIGHT = 28, TONGUE = 16;
  const STEPS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400];
  const byId = (id) => document.getElementById(id);
  const make = (tag, css, text) => {
    const element = document.createElement(tag);
    if (css) element.className = css;
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const percent = (value) => `${(value * 100).toFixed(4)}%`;
  const seconds = (value) => `${value.toLocaleString("en", { maximumFractionDigits: 3 })} s`;

  // --- charts ------------------------------------------------------------------------------------------------

  // Asked once: to ask each chart would lay out the page anew each time.
  const atFirst = document.querySelector("main").clientWidth || 1000;
  const charts = [...document.querySelectorAll(".chart")].map((root, number) => {
    const entry = entries[number];
    const chart = { root, entry, number, zoomed: 0, elements: [], tongues: [], deadlines: [], current: 0, width: atFirst };
    chart.axis = make("div", "axis");
    chart.axis.setAttribute("aria-hidden", "true");
    chart.rows = make("div", "rows");
    chart.rows.setAttribute("role", "tree");
    chart.rows.setAttribute("aria-label", `Nested limits of ${entry.name}`);
    chart.out = make("button", "zoom", "Zoom out");
    chart.out.type = "button";
    chart.out.hidden = true;
    chart.out.addEventListener("click", () => { zoom(chart, 0); focus(chart, chart.current); });
    entry.bars.forEach((bar, index) => {
      bar.children = [];
      if (bar.p !== null) entry.bars[bar.p].children.push(index);
      bar.level = bar.p === null ? 1 : entry.bars[bar.p].level + 1;
      bar.text = `${bar.layer} ${bar.name} ${bar.where} ${bar.words.join(" ")}`.toLowerCase();
    });
    chart.list = [...root.parentElement.querySelectorAll("tbody tr")];
    build(chart);
    draw(chart);
    root.append(chart.out, chart.axis, chart.rows);
    return chart;
  });

  function build(chart) {
    const tall = new Set(chart.entry.bars.filter((bar) => bar.o).map((bar) => bar.r));
    const tops = [];
    let top = 6;
    for (let row = 0; row < chart.entry.rows; row += 1) {
      tops.push(top);
      top += HEIGHT + (tall.has(row) ? TONGUE : 0);
    }
    chart.rows.style.height = `${top + 6}px`;
    chart.entry.bars.forEach((bar, index) => {
      const open = bar.open === "unbounded" && bar.look !== "unbounded" ? " open" : "";
      const element = make("div", `bar ${bar.kind} ${bar.look}${open}${bar.after ? " after" : ""}`);
      element.setAttribute("role", "treeitem");
      element.setAttribute("aria-level", bar.level);
      element.setAttribute("aria-label", spoken(bar));
      element.tabIndex = index === 0 ? 0 : -1;
      element.dataset.index = index;
      element.style.top = `${tops[bar.r]}px`;
      element.title = spoken(bar);
      const label = make("span", "label");
      label.setAttribute("aria-hidden", "true");
      if (bar.symbols) label.append(make("span", "sign", bar.symbols));
      label.append(make("span", "layer", `${bar.layer} `), make("b", "", bar.name), make("span", "limit", bar.limit || bar.worst));
      element.append(label);
      const length = bar.e - bar.s;
      for (const tick of bar.ticks) {
        if (length <= 0) break;
        const line = make("i", "tick");
        line.style.left = percent((tick - bar.s) / length);
        element.append(line);
      }
      chart.rows.append(element);
      chart.elements.push(element);
      let tongue = null, deadline = null;
      const above = bar.p === null ? null : chart.entry.bars[bar.p];
      const late = bar.after && !above.after;
      if (bar.o || late) {
        const first = late ? tops[above.r] + HEIGHT : tops[bar.r];
        deadline = make("i", "deadline");
        deadline.style.top = `${first - 2}px`;
        deadline.style.height = `${tops[bar.r] - first + HEIGHT + (bar.o ? TONGUE : 0)}px`;
        deadline.dataset.at = late ? above.e : bar.o[0];
        chart.rows.append(deadline);
      }
      if (bar.o) {
        tongue = make("div", "over");
        tongue.style.top = `${tops[bar.r] + HEIGHT - 1}px`;
        const deepest = !bar.children.some((child) => chart.entry.bars[child].o);
        if (deepest) tongue.append(make("span", "", `+${bar.over}`));
        else tongue.classList.add("passed");
        tongue.title = `${bar.name}: ${bar.over} after the limit around it`;
        tongue.dataset.index = index;
        tongue.setAttribute("aria-hidden", "true");
        chart.rows.append(tongue);
      }
      chart.tongues.push(tongue);
      chart.deadlines.push(deadline);
    });
  }

  function spoken(bar) {
    const parts = [`${bar.layer} ${bar.name}`.trim()];
    if (bar.limit) parts.push(`limit ${bar.limit}`);
    if (bar.worst) parts.push(`worst case ${bar.worst === "∞" ? "unbounded" : bar.worst}`);
    if (bar.after) parts.push("begins after the limit around it");
    return [...parts, ...bar.said, bar.where].join(", ");
  }

  function extent(bar) { return Math.max(bar.e, bar.o ? bar.o[1] : bar.e); }

  function draw(chart) {
    const { bars } = chart.entry;
    const from = chart.zoomed ? bars[chart.zoomed].s : 0;
    const to = chart.zoomed ? Math.max(extent(bars[chart.zoomed]), from + 1e-9) : chart.entry.seconds;
    const span = to - from;
    const { width } = chart;
    bars.forEach((bar, index) => {
      const element = chart.elements[index];
      const outside = bar.e < from || bar.s > to || (bar.e === from && bar.s < from);
      element.hidden = outside;
      const start = Math.max(bar.s, from), end = Math.min(bar.e, to);
      place(element, (start - from) / span, (end - start) / span);
      const wide = ((end - start) / span) * width;
      element.classList.toggle("narrow", wide < 26);
      element.classList.toggle("slim", wide < 130);
      const tongue = chart.tongues[index];
      if (tongue) {
        const left = Math.max(bar.o[0], from), right = Math.min(bar.o[1], to);
        tongue.hidden = right <= left;
        place(tongue, (left - from) / span, (right - left) / span);
      }
    });
    for (const deadline of chart.deadlines) {
      if (!deadline) continue;
      const at = Number(deadline.dataset.at);
      deadline.hidden = at < from || at > to;
      deadline.style.left = percent((at - from) / span);
    }
    chart.out.hidden = !chart.zoomed;
    scale(chart, from, to, width);
  }

  function place(element, left, width) {
    element.style.left = percent(left);
    element.style.width = percent(Math.max(width, 0));
  }

  function scale(chart, from, to, width) {
    const span = to - from;
    const step = STEPS.find((one) => (one / span) * width >= 90) || 86400 * Math.ceil((span * 90) / width / 86400);
    chart.axis.replaceChildren();
    chart.rows.querySelectorAll(".grid").forEach((line) => line.remove());
    const most = Math.floor(to / step + 1e-9);
    for (let number = Math.ceil(from / step - 1e-9); number <= most; number += 1) {
      const at = (number * step - from) / span;
      const label = make("span", at > 0.97 ? "last" : "", number === 0 ? "0" : seconds(number * step));
      if (at <= 0.995 || at >= 0) label.style.left = percent(at);
      chart.axis.append(label);
      const line = make("i", "grid");
      line.style.left = percent(at);
      chart.rows.prepend(line);
    }
    if (!chart.axis.children.length) chart.axis.append(make("span", "", `${seconds(from)} to ${seconds(to)}`));
  }

  function zoom(chart, index) {
    chart.zoomed = index;
    draw(chart);
  }

  // --- selecting ---------------------------------------------------------------------------------------------

  function focus(chart, index, quiet) {
    const target = chart.elements[index];
    if (target.hidden && chart.zoomed) zoom(chart, 0);
    chart.elements[chart.current].tabIndex = -1;
    chart.current = index;
    target.tabIndex = 0;
    if (!quiet) target.focus();
    select(chart, index);
  }

  function select(chart, index) {
    document.querySelectorAll(".selected").forEach((element) => {
      element.classList.remove("selected");
      element.removeAttribute("aria-selected");
    });
    chart.elements[index].classList.add("selected");
    chart.elements[index].setAttribute("aria-selected", "true");
    if (chart.list[index]) chart.list[index].classList.add("selected");
    details(chart.entry.bars[index]);
  }

  function details(bar) {
    const panel = byId("details");
    const facts = make("dl");
    const fact = (name, value, href) => {
      if (!value) return;
      const row = make("div"), shown = make("dd", "", href ? undefined : value);
      if (href) {
        const anchor = make("a", "", value);
        anchor.href = href;
        shown.append(anchor);
      }
      row.append(make("dt", "", name), shown);
      facts.append(row);
    };
    fact("Limit", bar.limit);
    fact("Known as", bar.known);
    fact("Worst case", bar.worst === "∞" ? "∞, nothing bounds it" : bar.worst);
    fact("After the limit around it", bar.over && `+${bar.over}`);
    fact("Begins", bar.after && "after the limit around it");
    fact("Source", bar.where, bar.href);
    fact("Called at", bar.called, bar.calledHref);
    const title = make("h3", "", `${bar.symbols ? `${bar.symbols} ` : ""}${bar.layer} ${bar.name}`);
    const close = make("button", "close", "Close");
    close.type = "button";
    close.addEventListener("click", () => { panel.hidden = true; });
    const said = make("ul");
    bar.said.forEach((text) => said.append(make("li", "", text)));
    panel.replaceChildren(title, close, facts, ...(bar.said.length ? [said] : []));
    panel.hidden = false;
  }

  function near(chart, index, key) {
    const bar = chart.entry.bars[index];
    if (key === "ArrowDown") return bar.children.find((child) => !chart.elements[child].hidden) ?? index;
    if (key === "ArrowUp") return bar.p ?? index;
    if (key === "Home") return 0;
    if (key === "End") return chart.entry.bars.length - 1;
    const beside = bar.p === null ? [index] : chart.entry.bars[bar.p].children;
    const at = beside.indexOf(index) + (key === "ArrowRight" ? 1 : -1);
    return beside[at] ?? index;
  }

  charts.forEach((chart) => {
    const indexOf = (event) => {
      const element = event.target.closest("[data-index]");
      return element ? Number(element.dataset.index) : null;
    };
    chart.rows.addEventListener("click", (event) => {
      const index = indexOf(event);
      if (index === null) return;
      if (event.ctrlKey || event.metaKey) open(chart.entry.bars[index]);
      focus(chart, index);
    });
    chart.rows.addEventListener("dblclick", (event) => {
      const index = indexOf(event);
      if (index !== null) zoom(chart, index);
    });
    chart.rows.addEventListener("keydown", (event) => {
      const index = indexOf(event);
      if (index === null || event.ctrlKey || event.metaKey || event.altKey) return;
      if (["ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) focus(chart, near(chart, index, event.key));
      else if (event.key === "Enter" || event.key === " ") { zoom(chart, index); focus(chart, index); }
      else if (event.key === "Escape") { zoom(chart, chart.zoomed ? chart.entry.bars[chart.zoomed].p ?? 0 : 0); byId("details").hidden = true; }
      else if (event.key === "o") open(chart.entry.bars[index]);
      else return;
      event.preventDefault();
    });
    chart.list.forEach((row, index) => {
      row.addEventListener("click", (event) => {
        if (!event.target.closest("a")) focus(chart, index, true);
      });
    });
    new ResizeObserver(([seen]) => {
      if (Math.abs(seen.contentRect.width - chart.width) < 1) return;
      chart.width = seen.contentRect.width || chart.width;
      draw(chart);
    }).observe(chart.root);
  });

  function open(bar) {
    const anchor = make("a");
    anchor.href = bar.href;
    anchor.target = "_blank";
    anchor.rel = "noopener";
    anchor.click();
  }

  // --- search and filters ------------------------------------------------------------------------------------

  const search = byId("search");
  let hits = [], at = -1, filter = "";

  function look() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const asked = words.length > 0 || filter !== "";
    hits = [];
    at = -1;
    charts.forEach((chart) => {
      const before = hits.length;
      chart.entry.bars.forEach((bar, index) => {
        const hit = asked && words.every((word) => bar.text.includes(word)) && (!filter || bar.look === filter);
        if (hit) hits.push([chart, index]);
        const dim = asked && !hit;
        chart.elements[index].classList.toggle("dim", dim);
        chart.tongues[index]?.classList.toggle("dim", dim);
        chart.list[index]?.classList.toggle("dim", dim);
      });
      const none = asked && hits.length === before;
      chart.root.closest("section").hidden = none;
      const entry = document.querySelector(`nav a[href="#entry-${chart.number}"]`);
      if (entry) entry.parentElement.hidden = none;
    });
    byId("found").textContent = asked ? `${hits.length} found` : "";
  }

  search.addEventListener("input", look);
  search.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { search.value = ""; look(); }
    if (event.key !== "Enter" || !hits.length) return;
    at = (at + (event.shiftKey ? hits.length - 1 : 1)) % hits.length;
    const [chart, index] = hits[at];
    focus(chart, index, true);
    chart.elements[index].scrollIntoView({ block: "center" });
    byId("found").textContent = `${at + 1} of ${hits.length}`;
    event.preventDefault();
  });
  document.querySelectorAll("[data-filter]").forEach((button) => button.addEventListener("click", () => {
    filter = filter === button.dataset.filter ? "" : button.dataset.filter;
    document.querySelectorAll("[data-filter]").forEach((one) => one.setAttribute("aria-pressed", String(one.dataset.filter === filter)));
    look();
  }));
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== search) { search.focus(); event.preventDefault(); }
  });

  // --- light and dark, print ---------------------------------------------------------------------------------

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  let chosen = "";
  const paint = () => { root.dataset.theme = chosen || (dark.matches ? "dark" : "light"); };
  dark.addEventListener("change", paint);
  byId("theme").addEventListener("click", () => { chosen = root.dataset.theme === "dark" ? "light" : "dark"; paint(); });
  paint();
  addEventListener("beforeprint", () => charts.forEach((chart) => zoom(chart, 0)));
})();
