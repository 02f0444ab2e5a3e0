// Light, dark or what the system says. A classic script that runs before the first paint, so that a dark page never flashes white.
(() => {
  const KEY = "springtide-theme";
  const system = matchMedia("(prefers-color-scheme: dark)");

  const remembered = () => {
    try {
      return localStorage.getItem(KEY) ?? "auto";
    } catch {
      return "auto"; // storage may be forbidden; the theme is then that of the system
    }
  };

  const apply = () => {
    const choice = remembered();
    const dark = choice === "dark" || (choice === "auto" && system.matches);
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    for (const button of document.querySelectorAll("[data-theme-choice]")) {
      const chosen = button.dataset.themeChoice === choice;
      button.setAttribute("aria-checked", String(chosen));
      button.tabIndex = chosen ? 0 : -1;
    }
    document.dispatchEvent(new Event("theme"));
  };

  const choose = (choice) => {
    try {
      localStorage.setItem(KEY, choice);
    } catch {
      // not remembered, and nothing to be done about it
    }
    apply();
  };

  system.addEventListener("change", apply);
  document.addEventListener("DOMContentLoaded", () => {
    const buttons = [...document.querySelectorAll("[data-theme-choice]")];
    buttons.forEach((button, at) => {
      button.addEventListener("click", () => choose(button.dataset.themeChoice));
      button.addEventListener("keydown", (event) => {
        const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (!by) return;
        event.preventDefault();
        const next = buttons[(at + by + buttons.length) % buttons.length];
        choose(next.dataset.themeChoice);
        next.focus();
      });
    });
    apply();
  });
  apply();
})();
