// Reads a curve out where the pointer is, or where the arrow keys have moved to; without it the pictures stay as they are.
"use strict";
const SVG = "http://www.w3.org/2000/svg", INSET = 6;

function made(name, parent, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return parent.appendChild(element);
}

// A strip: where it is, its axis, and the lowest and highest point of its curve at each column.
function strip(frame) {
  const box = ["x", "y", "width", "height"].map((name) => Number(frame.getAttribute(name)));
  const [low, high] = [Number(frame.dataset.low), Number(frame.dataset.high)], log = frame.dataset.log === "1";
  const points = new Map();
  let next = frame.nextElementSibling;
  while (next && !next.classList.contains("frame") && !next.classList.contains("curve")) next = next.nextElementSibling;
  const path = next && next.classList.contains("curve") ? next.getAttribute("d") : "";
  for (const [, x, y] of path.matchAll(/([\d.]+) (-?[\d.]+)/g)) {
    const known = points.get(Number(x)) || [Infinity, -Infinity];
    points.set(Number(x), [Math.min(known[0], Number(y)), Math.max(known[1], Number(y))]);
  }
  const value = (y) => {
    const share = (box[1] + box[3] - INSET - y) / (box[3] - 2 * INSET);
    return log ? low * (high / low) ** share : low + share * (high - low);
  };
  return { box, points, value };
}

const shown = (value) => (Math.abs(value) >= 1e5 || (value && Math.abs(value) < 1e-3) ? value.toExponential(2) : String(Number(value.toPrecision(3))));

function reader(svg) {
  const strips = [...svg.querySelectorAll(".frame")].map(strip);
  if (!strips.length) return;
  const [left, , width] = strips[0].box, { first, last, unit } = svg.querySelector(".frame").dataset;
  const top = strips[0].box[1], end = strips.at(-1).box[1] + strips.at(-1).box[3];
  const cursor = made("path", svg, { class: "cursor" });
  const step = made("text", svg, { class: "value", y: end + 20 });
  const values = strips.map(({ box }) => made("text", svg, { class: "value", x: left + width, y: box[1] - 7, "text-anchor": "end" }));
  let at = left + width;
  const move = (x) => {
    at = Math.min(Math.max(x, left + 1), left + width - 1);
    const column = left + 2 * Math.floor((at - left) / 2) + 1, steps = Number(last) - Number(first);
    cursor.setAttribute("d", `M${column} ${top}V${end}`);
    step.textContent = `${unit} ${Math.round(Number(first) + ((column - left) / width) * steps).toLocaleString("en")}`;
    step.setAttribute("x", column);
    step.setAttribute("text-anchor", column > left + width / 2 ? "end" : "start");
    strips.forEach(({ points, value }, index) => {
      const found = [0, -2, 2, -4, 4].map((by) => points.get(column + by)).find(Boolean);
      const [low, high] = found ? [shown(value(found[1])), shown(value(found[0]))] : ["", ""];
      values[index].textContent = low === high ? low : `${low} to ${high}`;
    });
  };
  const hide = () => [step, ...values].forEach((text) => { text.textContent = ""; }) || cursor.removeAttribute("d");
  svg.addEventListener("pointermove", (event) => move(new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse()).x));
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("blur", hide);
  svg.setAttribute("tabindex", "0");
  svg.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -2, ArrowRight: 2, PageUp: -40, PageDown: 40, Home: -width, End: width }[event.key];
    if (by) { move(at + by); event.preventDefault(); }
  });
}

// An event of the list is marked on its curve while the pointer is on it.
document.querySelectorAll(".below ol.entries > li").forEach((item, index) => {
  const mark = (on) => document.querySelectorAll(".event").forEach((event) => event.classList.toggle("here", on && event.textContent === String(index + 1)));
  item.addEventListener("pointerenter", () => mark(true));
  item.addEventListener("pointerleave", () => mark(false));
});
document.querySelectorAll("svg.stabtree").forEach(reader);
