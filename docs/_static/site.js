// What the theme's pages lack for keyboards and screen readers: levels of headings, names of landmarks, stops in what scrolls.
addEventListener("DOMContentLoaded", () => {
  for (const caption of document.querySelectorAll('.caption[role="heading"]')) caption.ariaLevel = "2";
  document.querySelector(".sidebar-drawer")?.setAttribute("aria-label", "Pages");
  document.querySelector(".toc-drawer")?.setAttribute("aria-label", "Contents of this page");
  const stops = () => {
    for (const part of document.querySelectorAll("article pre, .picture, .table-wrapper"))
      if (part.scrollWidth > part.clientWidth && !part.querySelector("a")) part.tabIndex = 0;
  };
  stops();
  addEventListener("resize", stops);
});
