// The filter of the gallery: what is seen, how bad, and a word. Without scripts all cards are shown.
(() => {
  const bar = document.querySelector(".filter");
  const cards = [...document.querySelectorAll(".gallery .shot")];
  const words = new Map(cards.map((card) => [card, `${card.textContent} ${card.dataset.words}`.toLowerCase()]));
  const search = bar.querySelector("input");
  const count = bar.querySelector(".count");
  const buttons = [...bar.querySelectorAll("button")];
  const chosen = (name) =>
    buttons.filter((one) => one.dataset[name] && one.getAttribute("aria-pressed") === "true").map((one) => one.dataset[name]);

  function filter() {
    const seen = chosen("seen"), severity = chosen("severity");
    const asked = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const chosenOf = cards.filter(
      (card) =>
        (!seen.length || seen.some((one) => card.dataset.seen.split(" ").includes(one))) &&
        (!severity.length || severity.includes(card.dataset.severity)),
    );
    // A whole message that is pasted has numbers and names of its own: what holds the most of its words is shown.
    const holds = (card) => asked.filter((word) => words.get(card).includes(word)).length;
    const most = Math.max(0, ...chosenOf.map(holds));
    const fits = new Set(asked.length && !most ? [] : chosenOf.filter((card) => holds(card) === most));
    for (const card of cards) card.hidden = !fits.has(card);
    for (const section of [...document.querySelectorAll("section section")].reverse())
      if (section.querySelector(".gallery .shot")) section.hidden = !section.querySelector(".shot:not([hidden])");
    const narrowed = seen.length || severity.length || asked.length;
    const partly = most && most < asked.length ? `, which hold ${most} of the ${asked.length} words` : "";
    const none = fits.size ? "" : ": choose less, or another word";
    count.textContent = narrowed ? `${fits.size} of ${cards.length} pictures${partly}${none}` : count.dataset.all;
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
  addEventListener("pageshow", filter); // a browser that goes back may bring the word back
})();
