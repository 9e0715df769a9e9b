// Elements. Text of the data is anybody's: it only ever becomes a text node or an attribute, never markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

function el(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function svg(name, attributes, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function byId(id) {
  return document.getElementById(id);
}

// What only a screen reader needs to hear.
function unseen(text) {
  return el("span", { class: "unseen" }, text);
}

// Charts are drawn at the width that they have, so that their letters keep their size on a phone.
function drawn(host, draw) {
  let width = 0;
  const observer = new ResizeObserver(() => {
    const now = Math.floor(host.clientWidth);
    if (now === width || now === 0) return;
    width = now;
    host.replaceChildren(...[draw(width)].flat());
  });
  observer.observe(host);
  return host;
}

function say(text) {
  byId("said").textContent = text;
}
