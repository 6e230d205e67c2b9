// Ranks the pages for what was asked (BM25 over titles, headings and words, stemmed) and shows the section that fits best.
(() => {
  const RARE = 1.2, LENGTH = 0.6; // k1 and b of BM25
  const TITLE = 9, HEADING = 4; // how many times a word of theirs counts
  // Pages for a few readers count less; the first page, whose table says what may be behind what one sees, more.
  const SHARES = [[/^index/, 1.4], [/^nodes\//, 0.6], [/^(reference\/(json|measures|manifest)|how-to\/write-)/, 0.7], [/^(explanation|faultbench|comparison)/, 0.85]];
  const SHOWN = 20, EXCERPT = 230;
  const ALIASES = {
    "w&b": "wandb", "weights & biases": "wandb", "weights and biases": "wandb", nans: "nan", lr: "learning rate", grad: "grad gradient",
    "turn it off": "ignore", "turn that off": "ignore", silence: "ignore", "warns about": "false alarm", "false positive": "false alarm", "false positives": "false alarms", ci: "ci github action gitlab", oom: "out of memory",
    decrease: "fall", decreasing: "falling", crashed: "died",
  };
  // Words that people type for a page, and that it does not use itself.
  const ALSO = {
    "failures/nan-backward": "loss explodes blows up to nan", "failures/grad-norm-rising": "loss explodes diverges blows up",
    "failures/overfitting": "validation loss goes up rises while training loss goes down", "failures/at-chance": "loss is stuck, not going down at all",
    "failures/flat-from-start": "loss is stuck, not going down at all, not learning", "explanation/restart": "which checkpoint to go back to, resume, roll back",
    "explanation/safety": "offline without internet, is my data uploaded, private", "how-to/calibrate": "too many false alarms, lower the sensitivity, thresholds",
    "how-to/baseline": "false alarm, warning about a run that is fine, turn off, silence, ignore", "reference/reading": "it can't find the loss in my own csv, other column names",
    "reference/outputs": "difference between warning and critical, severity, exit code", tutorial: "what does onset mean, verdict, finding",
  };
  const root = document.documentElement.dataset.content_root || "";
  const stemmer = new Stemmer(), stems = new Map();
  const stem = (word) => {
    if (!stems.has(word)) stems.set(word, stemmer.stemWord(word));
    return stems.get(word);
  };
  const WORD = /[\p{L}\p{N}]+/gu;
  const aliased = (text) =>
    Object.entries(ALIASES).reduce((now, [name, words]) => now.replaceAll(new RegExp(`(?<!\\w)${name}(?!\\w)`, "g"), words), text.toLowerCase());
  const terms = (text) => (aliased(text).match(WORD) || []).filter((word) => !stopwords.has(word)).map(stem);

  const sections = [], pages = [];
  for (const [address, parts] of window.pages) {
    const page = { address, title: parts[0][1], sections: [], counts: new Map(), length: 0 };
    const add = (words, weight, to) => words.forEach((word) => to.counts.set(word, (to.counts.get(word) || 0) + weight));
    for (const [index, [anchor, heading, text]] of parts.entries()) {
      const section = { anchor, heading, text, counts: new Map(), length: 0 };
      const [head, body] = [terms(heading), terms(text)];
      add(head, HEADING, section), add(body, 1, section);
      add(head, index ? HEADING : TITLE, page), add(body, 1, page);
      section.length = head.length + body.length, page.length += section.length;
      page.sections.push(section), sections.push(section);
    }
    add(terms(ALSO[address.replace(".html", "")] || ""), HEADING, page);
    for (const word of terms(address.replace(".html", ""))) page.counts.set(word, (page.counts.get(word) || 0) + HEADING); // an id
    page.share = (SHARES.find(([where]) => where.test(address)) || [0, 1])[1];
    pages.push(page);
  }

  function scorer(all) {
    const mean = all.reduce((sum, one) => sum + one.length, 0) / all.length;
    const holders = new Map();
    for (const one of all) for (const word of one.counts.keys()) holders.set(word, (holders.get(word) || 0) + 1);
    return (one, asked) => {
      let score = 0, held = 0;
      for (const word of asked) {
        const count = one.counts.get(word) || 0;
        const having = holders.get(word) || 0;
        const weight = Math.log(1 + (all.length - having + 0.5) / (having + 0.5));
        score += (weight * count * (RARE + 1)) / (count + RARE * (1 - LENGTH + (LENGTH * one.length) / mean));
        held += count > 0;
      }
      return score * (held / asked.length); // what holds all words comes before what repeats one
    };
  }
  const ofPages = scorer(pages), ofSections = scorer(sections);

  function find(words) {
    const asked = [...new Set(terms(words))], phrase = aliased(words).trim();
    if (!asked.length) return [];
    const found = [];
    for (const page of pages) {
      let best = page.sections[0], most = -1;
      for (const section of page.sections) {
        const said = aliased(`${section.heading} ${section.text}`).includes(phrase) ? 1.5 : 1;
        const score = said * ofSections(section, asked);
        if (score > most) (best = section), (most = score);
      }
      const score = page.share * (ofPages(page, asked) + most);
      if (score > 0) found.push({ page, section: best, score });
    }
    return found.sort((one, other) => other.score - one.score);
  }

  function excerpt(text, asked) {
    const hits = [...text.matchAll(WORD)].filter((match) => asked.has(stem(match[0].toLowerCase())));
    const within = (hit) => new Set(hits.filter((one) => one.index >= hit.index && one.index < hit.index + EXCERPT - 60).map((one) => stem(one[0].toLowerCase()))).size;
    const first = hits.reduce((best, hit) => (!best || within(hit) > within(best) ? hit : best), null);
    const from = Math.max(0, text.lastIndexOf(" ", Math.max(0, (first ? first.index : 0) - 50)));
    const line = document.createElement("p");
    let at = from;
    if (from) line.append("… ");
    for (const hit of hits.filter((one) => one.index >= from && one.index + one[0].length <= from + EXCERPT)) {
      const mark = document.createElement("mark");
      mark.textContent = hit[0];
      line.append(text.slice(at, hit.index), mark);
      at = hit.index + hit[0].length;
    }
    line.append(text.slice(at, from + EXCERPT), from + EXCERPT < text.length ? " …" : "");
    return line;
  }

  const input = document.querySelector(".find input");
  const list = document.querySelector(".found");
  function show() {
    const words = input.value, found = find(words), asked = new Set(terms(words));
    list.replaceChildren(
      ...found.slice(0, SHOWN).map(({ page, section }) => {
        const item = document.createElement("li"), link = document.createElement("a");
        const whole = section === page.sections[0];
        link.href = `${root}${page.address}${whole ? "" : `#${section.anchor}`}`;
        link.textContent = whole ? page.title : `${page.title} › ${section.heading}`;
        item.append(link, excerpt(section.text || page.sections[0].text, asked));
        return item;
      }),
    );
    const more = found.length > SHOWN ? `, the best ${SHOWN} of them below` : "";
    document.querySelector(".count").textContent = asked.size ? `${found.length || "No"} page${found.length === 1 ? "" : "s"}${more}` : "";
  }
  input.value = new URLSearchParams(location.search).get("q") || "";
  input.addEventListener("input", show);
  window.find_pages = (words) => find(words).map(({ page, section }) => `${page.address}#${section.anchor}`); // for tests
  show();
})();
