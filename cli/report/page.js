// What every page has: its theme, and what it says when it cannot be drawn.

function byId(id) {
  return document.getElementById(id);
}

function startTheme() {
  const select = byId("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const charts = [];
  const apply = () => {
    document.documentElement.dataset.theme = select.value || (dark.matches ? "dark" : "light");
    for (const chart of charts) chart.changed();
  };
  select.addEventListener("change", apply);
  dark.addEventListener("change", apply);
  apply();
  return charts;
}

// `draw` fills the page; `ready` is set when that has been painted.
function drawOrSay(draw) {
  draw().then(() => requestAnimationFrame(() => requestAnimationFrame(() => {
    document.documentElement.dataset.ready = Math.round(performance.now());
  }))).catch((error) => {
    const failure = byId("failure");
    failure.hidden = false;
    failure.textContent = `This page could not be drawn: ${error.message}. It needs a browser of 2023 or later.`;
    console.error(error);
  });
}
