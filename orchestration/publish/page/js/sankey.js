// Flows from column to column. Widths are amounts; what is negative cannot be drawn and is said beside the chart.

const MOST_NODES = 12;

// columns: [{ head, name(id), tone? }]; steps: one list of { from, to, cost } between each two columns
function sankey(columns, steps, width) {
  const kept = columns.map((column, place) => keptNodes(steps, place));
  const fold = (place, id) => (kept[place].has(id) ? id : "…");
  const links = steps.map((step, place) => merged(step.filter((link) => link.cost > 0), place, fold));
  const nodes = columns.map((column, place) => columnNodes(links, place));
  order(nodes, links);

  const head = 26;
  const gap = 9;
  const least = 16;
  const thick = 12;
  const busiest = Math.max(...nodes.map((column) => column.length));
  const height = Math.max(340, Math.min(640, head + busiest * (least + gap) + 170));
  const room = (column) => height - head - 8 - gap * (column.length - 1);
  // The largest scale at which every column fits although its small nodes get room for their names.
  const fits = (scale) => nodes.every((column) => column.reduce((sum, node) => sum + Math.max(least, node.size * scale), 0) <= room(column));
  let low = 0;
  let high = Math.min(...nodes.map((column) => room(column) / Math.max(1e-9, column.reduce((sum, node) => sum + node.size, 0))));
  for (let turn = 0; turn < 40; turn += 1) {
    const middle = (low + high) / 2;
    if (fits(middle)) low = middle;
    else high = middle;
  }
  const scale = low;
  const labelRoom = Math.min(150, Math.max(96, width * 0.15));
  const span = (width - thick - labelRoom) / (columns.length - 1);
  nodes.forEach((column, place) => {
    let y = head;
    for (const node of column) {
      const slot = Math.max(least, node.size * scale);
      node.x = place * span;
      node.height = Math.max(1.5, node.size * scale);
      node.y = y + (slot - node.height) / 2;
      node.in = node.y;
      node.out = node.y;
      y += slot + gap;
    }
  });

  const ribbons = [];
  links.forEach((step, place) => {
    const rank = (side, id) => nodes[side].findIndex((node) => node.id === id);
    const drawnOrder = [...step].sort((a, b) => rank(place, a.from) - rank(place, b.from) || rank(place + 1, a.to) - rank(place + 1, b.to));
    for (const link of drawnOrder) {
      const source = nodes[place].find((node) => node.id === link.from);
      link.size = link.cost * scale;
      link.y0 = source.out;
      source.out += link.size;
      link.source = source;
    }
    const arrival = [...step].sort((a, b) => rank(place + 1, a.to) - rank(place + 1, b.to) || rank(place, a.from) - rank(place, b.from));
    for (const link of arrival) {
      const target = nodes[place + 1].find((node) => node.id === link.to);
      link.y1 = target.in;
      target.in += link.size;
      ribbons.push(ribbon(link, link.source, target, thick, columns, place));
    }
  });
  const boxes = nodes.flatMap((column, place) =>
    column.map((node) => {
      const name = nodeName(columns[place], node.id);
      return svg(
        "g",
        { "data-tip": name + "\n" + STATE.currency + " " + cents(node.size) },
        svg("rect", { class: "node " + tone(columns[place], node.id), x: node.x, y: node.y, width: thick, height: node.height, rx: 2 }),
        svg("text", { class: "label", x: node.x + thick + 6, y: node.y + node.height / 2 + 4 }, cut(name, (place === columns.length - 1 ? labelRoom : span - thick) - 12)),
      );
    }),
  );
  const heads = columns.map((column, place) => svg("text", { class: "head", x: place * span, y: 12 }, column.head));
  const label = "Flow of money: " + columns.map((column) => column.head.toLowerCase()).join(", then ") + ". The table below has every amount.";
  return svg("svg", { class: "chart", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, ribbons, boxes, heads);
}

// The largest nodes of a column have their own place; the others share one.
function keptNodes(steps, place) {
  const sizes = new Map();
  const count = (id, cost) => sizes.set(id, (sizes.get(id) || 0) + Math.max(0, cost));
  if (place < steps.length) steps[place].forEach((link) => count(link.from, link.cost));
  else steps[place - 1].forEach((link) => count(link.to, link.cost));
  const ids = [...sizes.entries()].sort((a, b) => b[1] - a[1]).map(([id]) => id);
  return new Set(ids.length > MOST_NODES ? ids.slice(0, MOST_NODES - 1) : ids);
}

function merged(step, place, fold) {
  const found = new Map();
  for (const link of step) {
    const from = fold(place, link.from);
    const to = fold(place + 1, link.to);
    const key = JSON.stringify([from, to]);
    if (!found.has(key)) found.set(key, { from, to, cost: 0 });
    found.get(key).cost += link.cost;
  }
  return [...found.values()];
}

// A node is as tall as the larger of what comes in and what goes out: credits make them differ.
function columnNodes(links, place) {
  const sizes = new Map();
  const add = (side, key) => {
    const sums = new Map();
    for (const link of side || []) sums.set(link[key], (sums.get(link[key]) || 0) + link.cost);
    for (const [id, sum] of sums) sizes.set(id, Math.max(sizes.get(id) || 0, sum));
  };
  add(links[place], "from");
  add(links[place - 1], "to");
  return [...sizes].map(([id, size]) => ({ id, size })).sort((a, b) => b.size - a.size);
}

// Nodes are drawn near what feeds them, which keeps ribbons from crossing; the collected rest comes last.
function order(nodes, links) {
  for (let place = 1; place < nodes.length; place += 1) {
    const rank = new Map(nodes[place - 1].map((node, index) => [node.id, index]));
    for (const node of nodes[place]) {
      const feeders = links[place - 1].filter((link) => link.to === node.id);
      const weight = feeders.reduce((sum, link) => sum + link.cost, 0) || 1;
      node.centre = feeders.reduce((sum, link) => sum + rank.get(link.from) * link.cost, 0) / weight;
    }
    nodes[place].sort((a, b) => (a.id === "…") - (b.id === "…") || a.centre - b.centre || b.size - a.size);
  }
}

function ribbon(link, source, target, thick, columns, place) {
  const x0 = source.x + thick;
  const x1 = target.x;
  const middle = (x0 + x1) / 2;
  const size = Math.max(0.6, link.size);
  const path = `M${x0},${link.y0} C${middle},${link.y0} ${middle},${link.y1} ${x1},${link.y1} L${x1},${link.y1 + size} C${middle},${link.y1 + size} ${middle},${link.y0 + size} ${x0},${link.y0 + size} Z`;
  const ends = nodeName(columns[place], link.from) + " → " + nodeName(columns[place + 1], link.to);
  const colour = place === columns.length - 2 ? tone(columns[place + 1], link.to) : tone(columns[place], link.from);
  return svg("path", { class: "ribbon " + colour, d: path, "data-tip": ends + "\n" + STATE.currency + " " + cents(link.cost) });
}

function nodeName(column, id) {
  return id === "…" ? "Others" : column.name(id);
}

function tone(column, id) {
  return id === "…" ? "tone-other" : column.tone ? column.tone(id) : "tone-plain";
}

// Names are cut to the room that they have; the tip and the table have them whole.
function cut(text, room) {
  const most = Math.max(4, Math.floor(room / 6.4));
  const letters = [...text];
  return letters.length <= most ? text : letters.slice(0, most - 1).join("") + "…";
}
