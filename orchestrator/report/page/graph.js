"use strict";
// The graph of a method, laid out by dagre and drawn as text of SVG. The page and
// `report --svg graph` share it: nothing here needs a browser.
const methodGraph = (heads, rows, number) => {
  const COLOURS = 9;
  const short = (name) => name.replace(/^.*::/, "").replace(/\..*$/, "");
  const escaped = (text) => text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
  const graph = new dagre.graphlib.Graph({ multigraph: false });
  graph.setGraph({ nodesep: 18, ranksep: 26, marginx: 12, marginy: 12, ranker: rows.length > 400 ? "longest-path" : "network-simplex" });
  graph.setDefaultEdgeLabel(() => ({}));
  const named = [...new Set(rows.map((row) => short(row.cells[1])))];
  const node = (id, lines, says, colour) =>
    graph.setNode(id, { width: Math.max(lines[0].length * 7.2, ...lines.slice(1).map((line) => line.length * 6.4), 60) + 20, height: 12 + 14 * lines.length, lines, says, colour });
  if (rows.some((row) => row.after.includes("-1"))) node("-1", ["input"], "inputs of the method, and what it keeps", COLOURS);
  rows.forEach((row, index) => {
    const name = short(row.cells[1]);
    const says = `#${row.cells[0]} ${row.cells[1]} → ${row.cells[2]}; `
      + row.cells.slice(3).map((text, n) => [heads[n + 3], text]).filter(([, text]) => text && text !== "–" && text !== "0")
        .map(([head, text]) => `${head} ${text}`).join(", ");
    const shape = row.cells[2].replace(/^\w+ /, "");
    node(`${index}`, [name, shape.length > 30 ? "" : shape, row.work].filter(Boolean), says, Math.min(named.indexOf(name), COLOURS));
    for (const from of row.after) graph.setEdge(from, `${index}`);
  });
  rows.forEach((row, index) => {
    if (!row.isOutput) return;
    if (!graph.hasNode("out")) node("out", ["output"], "outputs of the method", COLOURS);
    graph.setEdge(`${index}`, "out");
  });
  dagre.layout(graph);
  const drawn = [`<defs><marker id="arrow${number}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 1 7 4 0 7Z" class="arrow"/></marker></defs>`];
  for (const id of graph.edges()) {
    const points = graph.edge(id).points;
    const curve = points.slice(1).map((p, n) => {
      const before = points[n];
      const middle = (before.y + p.y) / 2;
      return `C${before.x.toFixed(1)} ${middle.toFixed(1)} ${p.x.toFixed(1)} ${middle.toFixed(1)} ${p.x.toFixed(1)} ${p.y.toFixed(1)}`;
    }).join("");
    drawn.push(`<path class="edge" d="M${points[0].x.toFixed(1)} ${points[0].y.toFixed(1)}${curve}" marker-end="url(#arrow${number})"/>`);
  }
  const nodes = graph.nodes().map((id) => graph.node(id));
  nodes.forEach((at, n) => {
    const texts = at.lines.map((line, k) => `<text x="${(at.width / 2).toFixed(1)}" y="${17 + 14 * k}" class="mid${k ? " small" : ""}">${escaped(line)}</text>`);
    drawn.push(`<g class="node" role="img" tabindex="${n ? -1 : 0}" transform="translate(${(at.x - at.width / 2).toFixed(1)} ${(at.y - at.height / 2).toFixed(1)})"><title>${escaped(at.says)}</title><rect width="${at.width.toFixed(1)}" height="${at.height}" rx="6" class="c${at.colour}"/>${texts.join("")}</g>`);
  });
  const { width, height } = graph.graph();
  return { width, height, body: drawn.join("\n"), nodes: nodes.map(({ x, y }) => ({ x, y })) };
};
