// Light and dark: the system's choice until the person makes one.
export function theme(button) {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const now = () => root.dataset.theme || (dark.matches ? "dark" : "light");
  const show = () => {
    const other = now() === "dark" ? "light" : "dark";
    button.textContent = now() === "dark" ? "☀" : "☾";
    button.setAttribute("aria-label", `Switch to ${other} colours`);
    button.title = `Switch to ${other} colours`;
    dispatchEvent(new Event("themechange"));
  };
  try { if (localStorage.nearkinTheme) root.dataset.theme = localStorage.nearkinTheme; } catch { /* not allowed */ }
  button.addEventListener("click", () => {
    root.dataset.theme = now() === "dark" ? "light" : "dark";
    try { localStorage.nearkinTheme = root.dataset.theme; } catch { /* not allowed */ }
    show();
  });
  dark.addEventListener("change", show);
  show();
}
