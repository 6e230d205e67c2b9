// Draws the curves with uPlot, to be read out, enlarged and compared; without scripts, and in print, the picture stays.
"use strict";
const still = document.querySelector(".still"), data = JSON.parse(document.getElementById("curves").textContent);
const { unit, whole, near, marks, strips } = data, plots = [], [first, last] = whole;
const small = innerWidth < 600, TALL = small ? 130 : 220, LOW = small ? 50 : 92, AXIS = 30, ROW = 17, SIDE = small ? 44 : 58;
const WORDS = { onset: `onset at ${unit} `, restart: `restart from ${unit} ` };
const labelled = marks.filter((mark) => WORDS[mark.kind]);
let shown = whole, picked = "";

const add = (parent, name, className, textContent = "") => Object.assign(parent.appendChild(document.createElement(name)), { className, textContent });
const root = document.documentElement, colour = (name) => getComputedStyle(root).getPropertyValue(`--${name}`);
const count = (value) => Math.round(value).toLocaleString("en");
const short = (value) => (value && (Math.abs(value) >= 1e5 || Math.abs(value) < 1e-3) ? value.toExponential(2).replace(/\.?0*e\+?/, "e") : String(Number(value.toPrecision(4))));
const isWhole = () => shown[0] <= first && shown[1] >= last, at = (plot, step) => plot.valToPos(step, "x", true);

function zoom(from, to) {
  const span = Math.max(to - from, Math.min(4, last - first)), start = Math.max(first, Math.min(from, last - span));
  shown = [start, Math.min(last, start + span)];
  plots.forEach((plot) => plot.setScale("x", { min: shown[0], max: shown[1] }));
  out.disabled = isWhole();
}

// All of what is seen once it is enlarged; of the whole run the axis of the picture, which a few far values don't stretch.
const range = (strip) => (plot, low, high) => {
  if (isWhole() || low === null) [low, high] = strip.ends;
  if (strip.log && low > 0) return low === high ? [low / 2, high * 2] : [low / 1.1, high * 1.1];
  const room = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
  return [low - room, high + room];
};

function behind(plot) {
  const { ctx, bbox } = plot;
  Object.assign(ctx, { fillStyle: colour("card") }).fillRect(bbox.left, bbox.top, bbox.width, bbox.height);
  for (const mark of marks.filter(({ until }) => until)) {
    const [left, right] = [mark.step, mark.until].map((step) => Math.min(Math.max(at(plot, step), bbox.left), bbox.left + bbox.width));
    ctx.fillStyle = colour(mark.kind === "doubt" ? "doubt" : "lost");
    ctx.fillRect(left, bbox.top, Math.max(right - left, mark.kind === "doubt" ? 2 : 0), bbox.height);
  }
}

const over = (strip, index) => (plot) => {
  const { ctx, bbox } = plot, ratio = uPlot.pxRatio, [xs, ys] = plot.data;
  const inside = (x) => x >= bbox.left - 1 && x <= bbox.left + bbox.width + 1;
  const write = (text, x, y, ink, align = "left", textBaseline = "alphabetic") => Object.assign(ctx, { fillStyle: ink, textAlign: align, textBaseline, font: `600 ${12 * ratio}px system-ui` }).fillText(text, x, y);
  ctx.save();
  labelled.forEach((mark, row) => {
    const x = at(plot, mark.step), top = bbox.top - (index ? 0 : (labelled.length - row) * ROW * ratio), words = WORDS[mark.kind] + mark.label;
    if (!inside(x)) return;
    Object.assign(ctx, { strokeStyle: colour(mark.kind), lineWidth: 1.4 * ratio }).setLineDash([4 * ratio, 3 * ratio]);
    ctx.stroke(new Path2D(`M${x} ${top}V${bbox.top + bbox.height}`));
    const left = x + 8 * ratio * words.length > bbox.left + bbox.width;
    if (!index) write(words, x + (left ? -5 : 5) * ratio, top + 11 * ratio, colour(mark.kind), left ? "right" : "left");
  });
  ctx.setLineDash([]);
  let end = -Infinity;  // crosses don't touch
  ctx.beginPath();
  xs.forEach((step, row) => {
    const x = at(plot, step), y = bbox.top + 9 * ratio, half = 4 * ratio;
    if (ys[row] !== null || !inside(x) || x - end < 3 * half) return;
    end = x;
    ctx.moveTo(x - half, y - half); ctx.lineTo(x + half, y + half); ctx.moveTo(x + half, y - half); ctx.lineTo(x - half, y + half);
  });
  Object.assign(ctx, { strokeStyle: colour("bad"), lineWidth: 1.8 * ratio }).stroke();
  const far = ys.reduce((best, value, row) => (value > plot.scales.y.max && inside(at(plot, xs[row])) && !(value <= ys[best]) ? row : best), -1);
  if (far >= 0) write(`▲ ${short(ys[far])}`, Math.min(at(plot, xs[far]), bbox.left + bbox.width - 60 * ratio), bbox.top + 13 * ratio, colour("curve"));
  for (const mark of marks.filter(({ kind, metric }) => kind === "event" && metric === strip.key)) {
    const x = at(plot, mark.step), row = xs.findLastIndex((step, place) => step <= mark.step && typeof ys[place] === "number");
    if (!inside(x)) continue;
    const y = Math.min(Math.max(row < 0 ? bbox.top : plot.valToPos(ys[row], "y", true), bbox.top + 8 * ratio), bbox.top + bbox.height - 8 * ratio);
    Object.assign(ctx, { fillStyle: colour(mark.label === picked ? "bad" : "text"), strokeStyle: colour("back"), lineWidth: 1.5 * ratio }).beginPath();
    ctx.arc(x, y, 8.5 * ratio, 0, 7); ctx.fill(); ctx.stroke();
    write(mark.label, x, y + ratio, colour("back"), "center", "middle");
  }
  ctx.fillStyle = colour("restart");
  if (index === strips.length - 1) marks.filter(({ kind, step }) => kind === "checkpoint" && inside(at(plot, step))).forEach(({ step }) => {
    const x = at(plot, step), y = bbox.top + bbox.height;
    ctx.fill(new Path2D(`M${x} ${y - 7 * ratio}l${-4 * ratio} ${7 * ratio}h${8 * ratio}Z`));
  });
  ctx.restore();
};

function chart(strip, index) {
  const head = add(live, "p", "strip"), end = index === strips.length - 1, top = index ? 4 : 4 + labelled.length * ROW;
  for (const [name, kind, text] of [["b", "", strip.name], ["span", "quiet", strip.log && "log scale"], ["span", "first", strip.first && "moved first"]])
    if (text) add(head, name, kind, text);
  const value = add(head, "output", "value"), grid = { stroke: () => colour("line"), width: 1 };
  const axis = { stroke: () => colour("quiet"), font: "11px system-ui", grid, ticks: { show: false } };
  // Of a log scale the powers of ten, or of one decade its 1, 2 and 5; thinned.
  const splits = (_plot, _axis, low, high) => {
    const [tens, all] = [[1], [1, 2, 5]].map((digits) => [...Array(616).keys()].flatMap((power) => digits.map((digit) => digit * 10 ** (power - 308))).filter((one) => one >= low && one <= high));
    const taken = tens.length > 1 ? tens : all, by = Math.ceil(taken.length / (small ? 2 : 4));
    return taken.length > 1 ? taken.filter((_, place) => place % by === 0) : [low, high];
  };
  const line = (name) => ({ stroke: () => colour(name), width: 1.5, points: { size: 4 } });
  const rows = strip.good ? uPlot.join([strip.rows, strip.good], [[2, 2], [2, 2]]) : strip.rows;
  const told = (plot) => {
    const place = plot.cursor.idx, values = plot.data.slice(1).map((series) => (place === null ? undefined : series[place]));
    const words = values.map((one) => (typeof one === "number" ? short(one) : one === null ? "NaN or infinite" : ""));
    value.textContent = words[0] && `${unit} ${count(plot.data[0][place])}: ${words[0]}${words[1] ? ` · good ${words[1]}` : ""}`;
  };
  return new uPlot({
    width: live.clientWidth, height: (strip.tall ? TALL : LOW) + top + (end ? AXIS : 0), padding: [top, 14, 2, 0], legend: { show: false },
    cursor: { y: false, drag: { x: true, y: false, dist: 4, setScale: false }, sync: { key: "run", scales: ["x", null], filters: { pub: (kind) => kind === "mousemove" || kind === "mouseleave" } } },
    scales: { x: { time: false, range: () => shown }, y: { distr: strip.log ? 3 : 1, range: range(strip) } },
    axes: [{ ...axis, size: end ? AXIS : 0, space: Math.max(50, 7 * count(last).length + 14), values: (_, steps) => steps.map((step) => (end ? count(step) : "")), incrs: [1, 2, 5].flatMap((one) => Array.from({ length: 16 }, (_, power) => one * 10 ** power)).sort((a, b) => a - b) },
      { ...axis, size: SIDE, space: 30, ...(strip.log && { splits, filter: (_, values) => values }), values: (_, values) => values.map((one) => (one === null || strip.rows[1].every((row) => row === null) ? "" : short(one))) }],
    series: [{}, line("curve"), ...(strip.good ? [line("behind")] : [])],
    hooks: {
      drawClear: [behind], draw: [over(strip, index)], setCursor: [told],
      setSelect: [(plot) => plot.select.width > 4 && zoom(plot.posToVal(plot.select.left, "x"), plot.posToVal(plot.select.left + plot.select.width, "x")) || plot.setSelect({ width: 0 }, false)],
    },
  }, rows, live);
}

const live = document.createElement("div");
still.after(live);
Object.assign(live, { className: "live", tabIndex: 0, role: "group", ariaLabel: `${still.querySelector("desc").textContent} Arrow keys read the curves out, plus and minus enlarge, Escape shows the whole run.` });
root.classList.add("drawn");
const tools = add(live, "p", "tools"), into = add(tools, "button", "", "Around the onset"), out = add(tools, "button", "", "Whole run");
add(tools, "span", "quiet", "drag to zoom in, Escape to zoom out");
if (data.good) add(tools, "span", "quiet good", `grey: the healthy run, ${data.good}`);
Object.assign(into, { hidden: !near.length, onclick: () => zoom(...near) });
Object.assign(out, { disabled: true, onclick: () => zoom(...whole) });
live.ondblclick = out.onclick;
strips.forEach((strip, index) => plots.push(chart(strip, index)));
const foot = add(live, "p", "tools"), seen = new Set([...marks.map(({ kind }) => kind), strips.some(({ rows }) => rows[1].includes(null)) && "cross"]);
for (const [kind, sign, words] of [["cross", "×", "NaN or infinite"], ["doubt", "■", "last good to first bad"], ["trouble", "■", "from there on"], ["checkpoint", "▲", "checkpoint"]])
  if (seen.has(kind)) add(foot, "span", "quiet", words).prepend(add(foot, "b", kind, `${sign} `));
live.addEventListener("keydown", ({ key }) => {
  const [lead] = plots, wide = shown[1] - shown[0], middle = lead.cursor.left >= 0 ? lead.posToVal(lead.cursor.left, "x") : shown[0] + wide / 2;
  const by = { ArrowLeft: -2, ArrowRight: 2, PageUp: -80, PageDown: 80 }[key];
  if (by) plots.forEach((plot) => plot.setCursor({ left: Math.min(Math.max(plot.valToPos(middle, "x") + by, 0), plot.over.clientWidth - 1), top: 1 }, true, false));
  const times = { "+": 0.25, "-": 1, Escape: Infinity, 0: Infinity }[key];
  if (times) zoom(...[-1, 1].map((side) => middle + side * wide * times));
});
// An event of the list shows itself on the curves, with what moved first, the onset and the restart.
document.querySelectorAll(".below ol.entries > li > .head").forEach((head, index) => {
  const button = document.createElement("button"), mark = marks.find(({ kind, label }) => kind === "event" && label === String(index + 1));
  if (!mark) return;
  head.replaceWith(Object.assign(button, { className: head.className, textContent: head.textContent }));
  button.onclick = () => {
    picked = mark.label;
    zoom(...(near.length ? [Math.min(...near, mark.step), Math.max(...near, mark.step)] : whole));
    setTimeout(() => plots.forEach((plot) => plot.setCursor({ left: plot.valToPos(mark.step, "x"), top: 1 }, true, false)));
    tools.scrollIntoView({ block: "nearest", behavior: "smooth" });
  };
});
new ResizeObserver(() => plots.forEach((plot) => live.clientWidth && plot.setSize({ width: live.clientWidth, height: plot.height }))).observe(live);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plots.forEach((plot) => plot.redraw()));
