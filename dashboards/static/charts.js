// Draws every figure of the page with the theme's colours, again whenever the theme changes.
(() => {
  // A custom property gives its text, which may be a choice of colours; an element gives the colour that was chosen.
  const swatch = document.createElement("span");
  swatch.hidden = true;
  document.body.append(swatch);
  const colour = (name) => {
    swatch.style.color = `var(--${name})`;
    return getComputedStyle(swatch).color;
  };

  const painted = (value) => {
    if (typeof value === "string") return value.startsWith("@") ? colour(value.slice(1)) : value;
    if (Array.isArray(value)) return value.map(painted);
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, painted(item)]));
    }
    return value;
  };

  const draw = () => {
    const family = getComputedStyle(document.body).fontFamily;
    for (const place of document.querySelectorAll("[data-chart]")) {
      const figure = painted(JSON.parse(document.getElementById("chart-" + place.dataset.chart).textContent));
      figure.layout.font.family = family;
      Plotly.react(place, figure.data, figure.layout, { displayModeBar: false, responsive: true });
    }
  };

  draw();
  document.addEventListener("themechange", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
})();
