// Draws every figure of the page with the theme's colours, again whenever the theme changes.
(() => {
  const painted = (value, colours) => {
    if (typeof value === "string") {
      return value.startsWith("@") ? colours.getPropertyValue("--" + value.slice(1)).trim() : value;
    }
    if (Array.isArray(value)) return value.map((item) => painted(item, colours));
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, painted(item, colours)]));
    }
    return value;
  };

  const draw = () => {
    const colours = getComputedStyle(document.documentElement);
    const family = getComputedStyle(document.body).fontFamily;
    for (const place of document.querySelectorAll("[data-chart]")) {
      const figure = painted(JSON.parse(document.getElementById("chart-" + place.dataset.chart).textContent), colours);
      figure.layout.font.family = family;
      Plotly.react(place, figure.data, figure.layout, { displayModeBar: false, responsive: true });
    }
  };

  draw();
  document.addEventListener("themechange", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
})();
