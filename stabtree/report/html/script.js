(() => {
  "use strict";
  const root = document.documentElement;
  const HEIGHTS = [180, 130, 100]; // of each of one, two and more strips
  const AXIS = 30;
  const BAND = 5;
  const ROOM = 8; // the part of half an axis that stays free at either end

  const make = (name, className, text) => {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const colour = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
  const whole = (value) => Math.round(value).toLocaleString("en-US");
  const short = (value) => {
    const size = Math.abs(value);
    if (value === 0) return "0";
    if (size >= 1e6 || size < 1e-3) return value.toExponential(1).replace("e+", "e");
    return size >= 1e3 ? whole(value) : String(Number(value.toPrecision(3)));
  };

  // Two points a column where it holds more than one value; a null breaks the line, and nothing joins what lies apart.
  const points = (strip, data) => {
    const cut = new Set(strip.cut);
    const many = strip.high.length > 0;
    const x = [data.first]; // all charts reach from end to end of the axis
    const y = [null];
    strip.at.forEach((step, place) => {
      if (place > 0 && cut.has(place)) {
        x.push(step);
        y.push(null);
      }
      x.push(step);
      y.push(strip.low[place]);
      if (many && strip.high[place] !== strip.low[place]) {
        x.push(Math.min(step + data.width / 2, data.last));
        y.push(strip.high[place]);
      }
    });
    x.push(data.last);
    y.push(null);
    return [x, y];
  };

  const draw = (data, holder) => {
    const plots = [];
    let shown = [data.first, data.last];
    const isWhole = () => shown[0] <= data.first && shown[1] >= data.last;
    const zoom = (min, max) => {
      const span = Math.max(max - min, Math.min(4, data.last - data.first));
      const start = Math.max(data.first, Math.min(min, data.last - span));
      const end = Math.min(data.last, start + span);
      shown = [start, end];
      for (const plot of plots) plot.setScale("x", { min: start, max: end });
    };

    const overlay = (strip) => (plot) => {
      const { ctx, bbox } = plot;
      const ratio = devicePixelRatio;
      const place = (step) => plot.valToPos(step, "x", true);
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top - BAND * ratio, bbox.width, bbox.height + BAND * ratio);
      ctx.clip();
      ctx.fillStyle = colour("bad");
      for (const [from, to] of strip.bad) {
        const left = place(from);
        const right = Math.max(place(to + data.width), left + 1.5 * ratio);
        ctx.globalAlpha = 1;
        ctx.fillRect(left, bbox.top - BAND * ratio, right - left, BAND * ratio);
        ctx.globalAlpha = 0.09;
        ctx.fillRect(left, bbox.top, right - left, bbox.height);
      }
      ctx.globalAlpha = 1;
      for (const mark of data.marks.filter((one) => ({ first: strip.leads, onset: strip.moved })[one.kind] ?? true)) {
        ctx.strokeStyle = colour(mark.kind);
        ctx.lineWidth = (mark.kind === "first" ? 1 : 1.5) * ratio;
        ctx.setLineDash({ restart: [2, 3], first: [], onset: [5, 3], parting: [5, 3] }[mark.kind].map((length) => length * ratio));
        ctx.beginPath();
        ctx.moveTo(place(mark.step), bbox.top - BAND * ratio);
        ctx.lineTo(place(mark.step), bbox.top + bbox.height);
        ctx.stroke();
      }
      ctx.restore();
    };

    // The course of other runs, below the curve: the band from their lowest to their highest values.
    const others = (strip) => (plot) => {
      if (!strip.behind) return;
      const { ctx, bbox } = plot;
      const { at, low } = strip.behind;
      const high = strip.behind.high.length ? strip.behind.high : low;
      const cut = new Set(strip.behind.cut);
      const place = (index, values) => [plot.valToPos(at[index] + data.width / 2, "x", true), plot.valToPos(values[index], "y", true)];
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
      ctx.clip();
      ctx.strokeStyle = colour("behind");
      ctx.fillStyle = colour("spread");
      ctx.lineWidth = (high === low ? 1.5 : 0.5) * devicePixelRatio; // of several runs the band says it
      ctx.lineJoin = "round";
      for (let start = 0; start < at.length; ) {
        let end = start + 1;
        while (end < at.length && !cut.has(end)) end += 1;
        ctx.beginPath();
        for (let index = start; index < end; index += 1) ctx.lineTo(...place(index, high));
        for (let index = end - 1; index >= start; index -= 1) ctx.lineTo(...place(index, low));
        ctx.closePath();
        ctx.fill();
        ctx.stroke();
        start = end;
      }
      ctx.restore();
    };

    const nearest = (step) => Math.floor(data.width < 1 ? step + 0.5 : step);
    const held = (strip, step) => {
      let left = 0;
      let right = strip.at.length - 1;
      while (left < right) {
        const middle = (left + right + 1) >> 1;
        if (strip.at[middle] <= step) left = middle;
        else right = middle - 1;
      }
      const bad = (strip.bad || []).some(([from, to]) => from <= step && step < to + Math.max(data.width, 1));
      const parts = [];
      if (strip.at.length && strip.at[left] <= step) {
        const low = strip.low[left];
        const high = strip.high.length ? strip.high[left] : low;
        const near = step - strip.at[left] < Math.max(data.width, 1);
        const at = near ? "" : `at ${whole(strip.at[left])}: `;
        if (near || !bad) parts.push(low === high ? `${at}${low}` : `${at}${low} to ${high}`);
      }
      if (bad) parts.push("NaN or infinite");
      return parts.join(", ") || "nothing logged yet";
    };
    const told = (strip, step) => {
      const good = strip.behind ? ` · good ${held(strip.behind, step)}` : "";
      return `${data.unit} ${whole(step)} · ${good ? "bad " : ""}${held(strip, step)}${good}`;
    };

    const strip = (item, last) => {
      const box = make("div", "strip");
      const head = make("p", "head");
      head.append(make("b", "", item.metric));
      if (item.log) head.append(make("span", "hint", "log scale"));
      if (item.leads) head.append(make("span", "first", "◀ first"));
      if (item.beyond.length) head.append(make("span", "hint", `reaches ${item.beyond.map(short).join(" and ")}, beyond the axis`));
      const readout = make("span", "readout");
      head.append(readout);
      box.append(head);
      holder.append(box);
      const [low, high] = item.axis;
      // Halves first: the ends of float64 lie further apart than it can say.
      const to = (value) => (item.log ? Math.log(value) : value) / 2;
      const from = (value) => (item.log ? Math.exp(value * 2) : value * 2);
      const ends = (min, max) => {
        const room = (to(max) - to(min)) / ROOM || Math.abs(to(max)) / 10 || 0.5;
        return [from(to(min) - room), from(to(max) + room)];
      };
      const labelled = (min, max) => {
        const room = (to(max) - to(min)) / (ROOM + 2);
        return [from(to(min) + room), from((to(min) + to(max)) / 2), from(to(max) - room)];
      };
      const size = () => ({ width: Math.max(holder.clientWidth, 200), height: HEIGHTS[Math.min(data.strips.length, 3) - 1] + (last ? AXIS : 0) });
      const plot = new uPlot(
        {
          ...size(),
          padding: [BAND + 3, 14, last ? 0 : 8, 0],
          legend: { show: false },
          cursor: {
            y: false,
            points: { show: false },
            drag: { x: true, y: false, setScale: false },
            bind: { dblclick: () => () => zoom(data.first, data.last) },
            sync: { key: "steps", scales: ["x", null], filters: { pub: (type) => type.startsWith("mousem") || type === "mouseleave" } },
          },
          scales: {
            x: { time: false, range: (u, min, max) => (min === null ? [data.first, data.last] : [min, max]) },
            y: {
              distr: item.log ? 3 : 1,
              range: (u, min, max) => (isWhole() || !Number.isFinite(min) ? ends(low, high) : ends(min, max)),
            },
          },
          series: [{}, { stroke: () => colour("curve"), width: 1.5, points: { size: 4, fill: () => colour("curve"), width: 0 } }],
          axes: [
            {
              show: last,
              size: AXIS,
              stroke: () => colour("quiet"),
              grid: { show: false },
              ticks: { stroke: () => colour("line"), width: 1, size: 4 },
              values: (u, splits) => splits.map((value) => (Number.isInteger(value) ? whole(value) : "")),
              space: 80,
            },
            {
              size: 62,
              gap: 6,
              stroke: () => colour("quiet"),
              splits: (u, place, min, max) => labelled(min, max),
              filter: (u, splits) => splits,
              values: (u, splits) => splits.map(short),
              grid: { stroke: () => colour("line"), width: 1 },
              ticks: { show: false },
            },
          ],
          hooks: {
            drawAxes: [others(item)],
            draw: [overlay(item)],
            setSelect: [
              (u) => {
                const { left, width } = u.select;
                if (width > 0) zoom(u.posToVal(left, "x"), u.posToVal(left + width, "x"));
                u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
              },
            ],
            setCursor: [
              (u) => {
                const at = u.cursor.left;
                readout.textContent = at === null || at === undefined || at < 0 ? "" : told(item, nearest(u.posToVal(at, "x")));
              },
            ],
          },
        },
        points(item, data),
        box,
      );
      plots.push(plot);
      return () => plot.setSize(size());
    };

    const controls = () => {
      const bar = make("div", "controls");
      const by = (share, shift) => {
        const [min, max] = shown;
        const span = (max - min) * share;
        const centre = (min + max) / 2 + (max - min) * shift;
        zoom(centre - span / 2, centre + span / 2);
      };
      const onset = data.marks.find((mark) => mark.kind === "onset" || mark.kind === "parting");
      const reach = Math.max((data.last - data.first) / 20, Math.min(30, data.last - data.first));
      const acts = [
        ["Whole run", "0", () => zoom(data.first, data.last)],
        ...(onset ? [[`Around the ${onset.kind}`, "o", () => zoom(onset.step - reach, onset.step + reach)]] : []),
        ["+", "+", () => by(0.5, 0), "Zoom in"],
        ["−", "-", () => by(2, 0), "Zoom out"],
        ["←", "ArrowLeft", () => by(1, -0.25), "Earlier"],
        ["→", "ArrowRight", () => by(1, 0.25), "Later"],
      ];
      for (const [name, , act, label] of acts) {
        const button = make("button", "", name);
        button.type = "button";
        if (label) button.setAttribute("aria-label", label);
        button.addEventListener("click", act);
        bar.append(button);
      }
      bar.append(make("span", "hint wide-only", "drag over a stretch to zoom, double-click for the whole run"));
      holder.addEventListener("keydown", (event) => {
        const found = event.ctrlKey || event.metaKey || event.altKey ? undefined : acts.find(([, key]) => key === event.key);
        if (!found) return;
        event.preventDefault();
        found[2]();
      });
      holder.querySelector(".strip").before(bar);
    };

    const fits = data.strips.map((item, place) => strip(item, place === data.strips.length - 1));
    controls();
    holder.setAttribute("role", "group");
    holder.setAttribute("aria-label", `Charts of ${data.strips.map((item) => item.metric).join(", ")}`);
    let width = holder.clientWidth;
    new ResizeObserver(() => {
      if (holder.clientWidth === width || !holder.clientWidth) return;
      width = holder.clientWidth;
      for (const fit of fits) fit();
    }).observe(holder);
    return () => plots.forEach((plot) => plot.redraw(false));
  };

  const holder = document.getElementById("live");
  let redraw = () => {};
  if (holder) {
    performance.mark("charts-start");
    root.classList.add("live");
    try {
      redraw = draw(JSON.parse(document.getElementById("chart-data").textContent), holder);
    } catch (error) {
      root.classList.remove("live"); // the picture stands in
      throw error;
    }
    performance.measure("charts", "charts-start");
  }

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const toggle = make("button", "theme");
  toggle.type = "button";
  const name = () => {
    toggle.textContent = isDark() ? "Light" : "Dark";
    toggle.setAttribute("aria-label", `${isDark() ? "Light" : "Dark"} colours`);
    redraw();
  };
  toggle.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    name();
  });
  dark.addEventListener("change", name);

  const folds = make("button", "theme", "Open all");
  folds.type = "button";
  folds.addEventListener("click", () => {
    const all = document.querySelectorAll("details");
    const open = folds.textContent === "Open all";
    for (const fold of all) fold.open = open;
    folds.textContent = open ? "Fold all" : "Open all";
  });
  const tools = make("div", "tools");
  tools.append(folds, toggle);
  document.getElementById("report").prepend(tools);
  name();
})();
