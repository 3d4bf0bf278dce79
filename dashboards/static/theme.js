// Runs before the first paint, so that a chosen theme never flashes the other one.
(() => {
  let chosen = null;
  try { chosen = localStorage.getItem("gsa-theme"); } catch { /* storage may be forbidden */ }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
