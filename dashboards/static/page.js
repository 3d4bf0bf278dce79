// The theme button and the copy buttons; the page reads well without either.
(() => {
  const root = document.documentElement;
  const dark = () => root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;

  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem("gsa-theme", root.dataset.theme); } catch { /* storage may be forbidden */ }
    document.dispatchEvent(new Event("themechange"));
  });

  for (const button of document.querySelectorAll("button[data-copy]")) {
    button.addEventListener("click", async () => {
      const source = document.getElementById(button.dataset.copy);
      let done = true;
      try {
        await navigator.clipboard.writeText(source.textContent);
      } catch {
        // Without leave to write the clipboard, select the text so that a key press copies it.
        getSelection().selectAllChildren(source);
        done = false;
      }
      button.textContent = done ? "Copied" : "Selected";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }
})();
