(() => {
  "use strict";
  const root = document.documentElement;
  const BATCH = 200; // rows that are drawn at once
  const SVG = "http://www.w3.org/2000/svg";
  const [BADGE, NAME, CURVE, MARK, STEP, TITLE, RESTART, LAST, MORE, LEAF, FIRST, ROWS, REPORT, COMMAND] = Array(14).keys();

  const make = (name, className, text) => {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const whole = (value) => (value === null ? "" : value.toLocaleString("en-US"));
  const { head, rows } = JSON.parse(document.getElementById("runs-data").textContent);
  const table = document.getElementById("table");
  const body = table.tBodies[0];

  const badge = (row) => make("span", `badge ${head.badges[row[BADGE]][0]}`, head.badges[row[BADGE]][1]);

  // Up to the finding in one colour, from there on in another.
  const spark = (row) => {
    const drawn = document.createElementNS(SVG, "svg");
    const known = { class: "spark", viewBox: head.box, preserveAspectRatio: "none", "aria-hidden": "true" };
    for (const [name, value] of Object.entries(known)) drawn.setAttribute(name, value);
    for (const [kind, path] of [["curve", row[CURVE]], ["mark", row[MARK]]]) {
      if (!path) continue;
      const stroke = document.createElementNS(SVG, "path");
      stroke.setAttribute("class", kind);
      stroke.setAttribute("d", path);
      drawn.append(stroke);
    }
    return drawn;
  };

  const named = (row) => {
    if (!row[REPORT]) return make("span", "", row[NAME]);
    const link = make("a", "", row[NAME]);
    link.href = `${head.reports}/${row[REPORT]}`;
    return link;
  };

  const details = (row) => {
    const line = make("tr", "more");
    const cell = make("td");
    cell.colSpan = 7;
    const list = make("dl");
    const add = (name, ...told) => {
      const value = make("dd");
      value.append(...told);
      list.append(make("dt", "", name), value);
    };
    if (row[LEAF]) add("finding", row[LEAF], row[MORE] ? ` and ${row[MORE]} more` : "");
    if (row[FIRST]) add("first", row[FIRST]);
    if (row[RESTART] !== null) add("restart", `from step ${whole(row[RESTART])}`);
    if (row[ROWS]) add("log", `${whole(row[ROWS])} rows`);
    add("in full", make("code", "", row[COMMAND] || `stabtree diagnose ${head.folder}${row[NAME]}`));
    cell.append(list);
    line.append(cell);
    return line;
  };

  const drawn = (row) => {
    const line = make("tr", "row");
    line.tabIndex = 0;
    line.setAttribute("aria-expanded", "false");
    const title = make("span", "", row[TITLE]);
    const cells = [badge(row), named(row), row[CURVE] || row[MARK] ? spark(row) : "", whole(row[STEP]), title, whole(row[RESTART]), whole(row[LAST])];
    cells.forEach((held, place) => {
      const cell = make("td", `c${place}`);
      cell.append(...(held === "" ? [] : [held]));
      if (place === 4 && row[MORE]) cell.append(make("span", "id", ` +${row[MORE]}`));
      line.append(cell);
    });
    const turn = () => {
      const open = line.getAttribute("aria-expanded") === "true";
      if (open) line.nextSibling.remove();
      else line.after(details(row));
      line.setAttribute("aria-expanded", String(!open));
    };
    line.addEventListener("click", (event) => {
      if (!event.target.closest("a") && !String(getSelection())) turn();
    });
    line.addEventListener("keydown", (event) => {
      if (event.target !== line || (event.key !== "Enter" && event.key !== " ")) return;
      event.preventDefault();
      turn();
    });
    return line;
  };

  // What is shown: all rows, filtered and sorted; drawn as far as anybody has scrolled.
  let shown = rows;
  let count = 0;
  const sentinel = make("p", "");
  sentinel.id = "sentinel";
  const next = make("button", "", "Show more");
  next.type = "button";
  sentinel.append(next);
  const grow = () => {
    const batch = shown.slice(count, count + BATCH);
    body.append(...batch.map(drawn));
    count += batch.length;
    sentinel.hidden = count >= shown.length;
  };
  next.addEventListener("click", grow);
  new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && count && !sentinel.hidden && grow(), {
    rootMargin: "600px",
  }).observe(sentinel);

  const search = make("input");
  search.type = "search";
  search.placeholder = "Search names and findings";
  search.setAttribute("aria-label", "Search names and findings");
  const choice = (label, options) => {
    const made = make("select");
    made.setAttribute("aria-label", label);
    made.append(new Option(label, ""), ...options.map(([value, text]) => new Option(text, value)));
    return made;
  };
  const present = new Set(rows.map((row) => row[BADGE]));
  const verdicts = choice(
    "every verdict",
    head.badges.map(([name, word]) => [name, word.toLowerCase()]).filter((_, place) => present.has(place)),
  );
  const leaves = new Map();
  for (const row of rows) if (row[LEAF]) leaves.set(row[LEAF], (leaves.get(row[LEAF]) || 0) + 1);
  const causes = choice(
    "every finding",
    [...leaves].sort((a, b) => b[1] - a[1]).map(([leaf, times]) => [leaf, `${leaf} (${whole(times)})`]),
  );
  const told = make("output");
  const sorting = { by: null, down: false };
  const SORTED = [BADGE, NAME, null, STEP, TITLE, RESTART, LAST];
  const collator = new Intl.Collator("en", { numeric: true });

  const update = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const verdict = head.badges.findIndex(([name]) => name === verdicts.value);
    shown = rows.filter((row) => {
      if (verdict >= 0 && row[BADGE] !== verdict) return false;
      if (causes.value && row[LEAF] !== causes.value) return false;
      if (!words.length) return true;
      const text = `${row[NAME]} ${row[TITLE]} ${row[LEAF]}`.toLowerCase();
      return words.every((one) => text.includes(one));
    });
    if (sorting.by !== null) {
      const key = sorting.by;
      const sign = sorting.down ? -1 : 1;
      shown.sort((a, b) => {
        const [one, other] = [a[key], b[key]];
        if (one === null || other === null) return (one === null) - (other === null); // what has none goes last
        return sign * (typeof one === "number" ? one - other : collator.compare(one, other));
      });
    }
    told.textContent = shown.length === rows.length ? `${whole(rows.length)} runs` : `${whole(shown.length)} of ${whole(rows.length)} runs`;
    count = 0;
    body.replaceChildren();
    grow();
  };

  [...table.tHead.rows[0].cells].forEach((cell, place) => {
    if (SORTED[place] === null) return;
    const button = make("button", "", cell.textContent);
    button.type = "button";
    button.addEventListener("click", () => {
      const same = sorting.by === SORTED[place];
      sorting.down = same && !sorting.down;
      sorting.by = SORTED[place];
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", sorting.down ? "descending" : "ascending");
      for (const other of table.tHead.querySelectorAll("button")) other.textContent = other.textContent.replace(/ [↑↓]$/, "");
      button.textContent += sorting.down ? " ↓" : " ↑";
      update();
    });
    cell.replaceChildren(button);
  });

  let pause = 0;
  search.addEventListener("input", () => {
    clearTimeout(pause);
    pause = setTimeout(update, 120);
  });
  for (const select of [verdicts, causes]) select.addEventListener("change", update);
  for (const link of document.querySelectorAll("a[data-badge]")) {
    link.addEventListener("click", () => {
      const { badge: chosen, leaf = "", by = "leaf" } = link.dataset;
      verdicts.value = by === "folder" ? "" : chosen;
      causes.value = by === "leaf" && leaves.has(leaf) ? leaf : "";
      search.value = by === "folder" ? `${leaf}/`.replace(head.folder, "") : "";
      update();
    });
  }
  const filters = make("div", "filters");
  filters.append(search, verdicts, causes, told);
  const list = table.parentElement;
  list.before(filters);
  list.after(sentinel);
  document.getElementById("rest")?.remove();

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const toggle = make("button", "theme");
  toggle.type = "button";
  const name = () => {
    toggle.textContent = isDark() ? "Light" : "Dark";
    toggle.setAttribute("aria-label", `${isDark() ? "Light" : "Dark"} colours`);
  };
  toggle.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    name();
  });
  dark.addEventListener("change", name);
  const tools = make("div", "tools");
  tools.append(toggle);
  document.getElementById("report").prepend(tools);
  name();
  update();
})();
