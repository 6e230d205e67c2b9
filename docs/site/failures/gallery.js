// The filter of the gallery: what is seen, how bad, and a word. Without scripts all cards are shown.
(() => {
  const bar = document.querySelector(".filter");
  const cards = [...document.querySelectorAll("article.fail")];
  const words = new Map(cards.map((card) => [card, card.textContent.toLowerCase()]));
  const search = bar.querySelector("input");
  const count = bar.querySelector(".count");
  const buttons = [...bar.querySelectorAll("button")];
  const chosen = (name) =>
    buttons.filter((one) => one.dataset[name] && one.getAttribute("aria-pressed") === "true").map((one) => one.dataset[name]);

  function filter() {
    const seen = chosen("seen"), severity = chosen("severity");
    const asked = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const card of cards) {
      const fits =
        (!seen.length || seen.some((one) => card.dataset.seen.split(" ").includes(one))) &&
        (!severity.length || severity.includes(card.dataset.severity)) &&
        asked.every((word) => words.get(card).includes(word));
      card.hidden = !fits;
      shown += fits;
    }
    for (const section of [...document.querySelectorAll("article section, section section")].reverse())
      if (section.querySelector("article.fail")) section.hidden = !section.querySelector("article.fail:not([hidden])");
    const narrowed = seen.length || severity.length || asked.length;
    count.textContent = narrowed ? `${shown} of ${cards.length} pictures` : count.dataset.all;
  }

  count.dataset.all = count.textContent;
  for (const button of buttons) {
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
      filter();
    });
  }
  search.addEventListener("input", filter);
  bar.hidden = false;
})();
