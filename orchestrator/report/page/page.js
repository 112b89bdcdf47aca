"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("live");
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const SVG = "http://www.w3.org/2000/svg";
  const make = (name, attributes, parent) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (parent) parent.append(made);
    return made;
  };

  // Light or dark.
  const theme = document.getElementById("theme");
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  const kept = { get: () => { try { return localStorage.getItem("orchestrator-theme"); } catch { return null; } },
    set: (value) => { try { localStorage.setItem("orchestrator-theme", value); } catch { /* a private window */ } } };
  if (kept.get()) root.dataset.theme = kept.get();
  theme.hidden = false;
  theme.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    kept.set(root.dataset.theme);
  });

  // One tip for all pictures, from the titles that work without this script.
  const tip = document.getElementById("tip");
  const says = (item) => {
    const title = item.querySelector(":scope > title");
    if (title) {
      item.setAttribute("aria-label", title.textContent);
      title.remove();
    }
    return item.getAttribute("aria-label") || "";
  };
  const show = (item, x, y) => {
    tip.textContent = says(item);
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - box.width - 8))}px`;
    tip.style.top = `${y + box.height + 24 > innerHeight ? Math.max(4, y - box.height - 12) : y + 18}px`;
  };
  const hide = () => { tip.hidden = true; };
  const ITEM = ".cell, .item, .node";
  document.addEventListener("pointermove", (event) => {
    const item = event.target.closest?.(ITEM);
    if (item) show(item, event.clientX, event.clientY); else hide();
  });
  document.addEventListener("pointerleave", hide);
  document.addEventListener("focusin", (event) => {
    const item = event.target.closest?.(ITEM);
    if (!item) return hide();
    if (!item.matches(":focus-visible")) return;
    const box = item.getBoundingClientRect();
    show(item, box.left + box.width / 2, Math.min(box.bottom, innerHeight - 40) - 12);
  });
  document.addEventListener("focusout", hide);
  addEventListener("scroll", hide, { passive: true });

  // One stop of the tab key for each picture; arrows go from part to part.
  const shown = (item) => item.style.display !== "none";
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
    const item = event.target.closest?.(ITEM);
    if (!item) return;
    const items = all(ITEM, item.ownerSVGElement).filter(shown);
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const to = event.key === "Home" ? items[0] : event.key === "End" ? items.at(-1)
      : step && items[items.indexOf(item) + step];
    if (to) {
      event.preventDefault();
      item.setAttribute("tabindex", -1);
      to.setAttribute("tabindex", 0);
      to.focus({ focusVisible: true });
    } else if ((event.key === "Enter" || event.key === " ") && item.matches("[data-o]")) {
      event.preventDefault();
      item.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    }
  });

  // The treemap: a part that is opened fills the picture.
  for (const map of all("svg.treemap")) {
    const [, , width, height] = map.getAttribute("viewBox").split(" ").map(Number);
    const cells = all(".cell", map).map((node) => ({
      node, level: +node.dataset.l, box: node.dataset.b.split(" ").map(Number),
      rect: node.querySelector("rect"), text: node.querySelector("text"), name: node.dataset.n,
    }));
    const crumbs = document.getElementById("crumbs");
    const inside = (one, other) => one[0] >= other[0] - .01 && one[1] >= other[1] - .01
      && one[0] + one[2] <= other[0] + other[2] + .01 && one[1] + one[3] <= other[1] + other[3] + .01;
    const top = { level: 0, box: [0, 0, width, height], name: "All flash" };
    let path = [top];
    const fit = (name, room) => {
      const count = Math.floor((room - 6) / 6.6);
      return name.length <= count ? name : count > 4 ? name.slice(0, count - 1) + "…" : "";
    };
    const draw = () => {
      const now = path.at(-1);
      const [left, upper, wide, high] = now.box;
      const x = (value) => (value - left) * width / wide;
      const y = (value) => (value - upper) * height / high;
      for (const cell of cells) {
        const isHere = cell.level > now.level && cell.level <= Math.max(2, now.level + 1) && inside(cell.box, now.box);
        cell.node.style.display = isHere ? "" : "none";
        if (!isHere) continue;
        const box = [x(cell.box[0]), y(cell.box[1]), cell.box[2] * width / wide, cell.box[3] * height / high];
        ["x", "y", "width", "height"].forEach((key, n) => cell.rect.setAttribute(key, box[n].toFixed(2)));
        const named = cell.level === now.level + 1 || (now.level === 0 && cell.level === 2);
        cell.text.setAttribute("x", (box[0] + 4).toFixed(2));
        cell.text.setAttribute("y", (box[1] + 12.5).toFixed(2));
        cell.text.textContent = named && box[3] > 13 ? fit(cell.name, box[2]) : "";
      }
      crumbs.replaceChildren(...path.flatMap((part, n) => {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = part.name;
        button.disabled = n === path.length - 1;
        button.addEventListener("click", () => { path = path.slice(0, n + 1); draw(); });
        return n ? [" › ", button] : [button];
      }));
    };
    map.addEventListener("click", (event) => {
      const node = event.target.closest(".cell");
      const hit = cells.find((cell) => cell.node === node);
      if (!hit) return;
      const now = path.at(-1);
      // The part of the next level that has what was hit.
      const next = cells.find((cell) => cell.level === now.level + 1
        && cell.node.hasAttribute("data-o") && inside(hit.box, cell.box) && shown(cell.node));
      if (next) path = [...path, next];
      else if (path.length > 1) path = path.slice(0, -1);
      hide();
      draw();
    });
    map.addEventListener("keydown", (event) => {
      if ((event.key === "Escape" || event.key === "Backspace") && path.length > 1) {
        event.preventDefault();
        path = path.slice(0, -1);
        draw();
      }
    });
    draw();
  }

  // Graphs, laid out by dagre when they come into view.
  const layOut = (place) => {
    const table = document.getElementById(`steps${place.dataset.method}`);
    const heads = all("thead th", table).map((th) => th.textContent);
    const rows = all("tbody tr", table).map((row) => ({
      cells: [...row.children].map((cell) => cell.textContent), after: row.dataset.a.split(" ").filter(Boolean),
      work: row.dataset.w || "", isOutput: "out" in row.dataset,
    }));
    const size = methodGraph(heads, rows, place.dataset.method);
    const svg = make("svg", { role: "group", class: "chart", "aria-label": place.dataset.title }, place);
    svg.innerHTML = size.body;
    // Move and zoom.
    const room = place.getBoundingClientRect();
    let view;
    const set = (next) => { view = next; svg.setAttribute("viewBox", next.map((v) => v.toFixed(2)).join(" ")); };
    const whole = () => set([0, 0, size.width, size.height]);
    const start = () => {
      const scale = Math.max(Math.min(1, room.width / size.width), .55);
      const wide = room.width / scale;
      const [first] = size.nodes;
      set([size.width <= wide ? (size.width - wide) / 2 : Math.max(0, first.x - wide / 2), 0, wide, room.height / scale]);
    };
    const zoom = (factor, cx = .5, cy = .5) => {
      const [x, y, w, h] = view;
      if ((w < 60 && factor < 1) || (w > 40 * (size.width + 400) && factor > 1)) return;
      set([x + w * cx * (1 - factor), y + h * cy * (1 - factor), w * factor, h * factor]);
    };
    start();
    svg.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
      event.preventDefault();
      const box = svg.getBoundingClientRect();
      zoom(event.deltaY > 0 ? 1.15 : 1 / 1.15, (event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
    }, { passive: false });
    let from = null;
    svg.addEventListener("pointerdown", (event) => { from = [event.clientX, event.clientY, ...view]; svg.setPointerCapture(event.pointerId); });
    svg.addEventListener("pointermove", (event) => {
      if (!from) return;
      const box = svg.getBoundingClientRect();
      const scale = Math.max(view[2] / box.width, view[3] / box.height);
      set([from[2] - (event.clientX - from[0]) * scale, from[3] - (event.clientY - from[1]) * scale, view[2], view[3]]);
    });
    for (const end of ["pointerup", "pointercancel"]) svg.addEventListener(end, () => { from = null; });
    svg.addEventListener("focusin", (event) => {
      const at = size.nodes[all(".node", svg).indexOf(event.target.closest(".node"))];
      if (!at || !event.target.matches(":focus-visible")) return;
      set([at.x - view[2] / 2, at.y - view[3] / 2, view[2], view[3]]);
    });
    const tools = document.createElement("div");
    tools.className = "tools";
    const tool = (label, text, act) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = text;
      button.setAttribute("aria-label", label);
      button.title = label;
      button.addEventListener("click", act);
      tools.append(button);
    };
    tool("Zoom in", "+", () => zoom(1 / 1.3));
    tool("Zoom out", "−", () => zoom(1.3));
    tool("Show the whole graph", "⤢", whole);
    tool("Save the graph as SVG", "SVG", () => {
      const copy = svg.cloneNode(true);
      copy.setAttribute("viewBox", `0 0 ${size.width} ${size.height}`);
      const style = make("style", {});
      // Not every program that shows SVG knows variables: the colours are those seen.
      const seen = getComputedStyle(root);
      style.textContent = document.getElementById("charts").textContent
        .replace(/var\((--[\w-]+)\)/g, (_, name) => seen.getPropertyValue(name).trim());
      copy.prepend(style);
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" }));
      link.download = `${place.dataset.name}.svg`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
    place.append(tools);
  };
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      seen.unobserve(entry.target);
      layOut(entry.target);
    }
  }, { rootMargin: "200px" });
  for (const place of all(".graph")) seen.observe(place);

  // Tables sort by the column whose head is pressed.
  for (const table of all("table.sortable")) {
    all("thead th", table).forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") === "descending";
        all("th", head.parentElement).forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const value = (row) => {
          const text = row.children[column].textContent.trim();
          const number = Number(text.replaceAll(",", ""));
          return column ? (Number.isNaN(number) ? -1 : number) : text;
        };
        const rows = all("tbody tr", table).sort((a, b) => {
          const [one, other] = [value(a), value(b)];
          return (one < other ? -1 : one > other ? 1 : 0) * (up ? 1 : -1);
        });
        table.tBodies[0].append(...rows);
      });
    });
  }
})();
