// The theme: what the person chose, else what the system says.
import { effect, signal } from "@preact/signals";

export type Theme = "light" | "dark";
const KEPT = "remit-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

function kept(): Theme | null {
  const text = localStorage.getItem(KEPT);
  return text === "light" || text === "dark" ? text : null;
}

export const theme = signal<Theme>(kept() ?? (system.matches ? "dark" : "light"));

export function toggleTheme(): void {
  theme.value = theme.value === "dark" ? "light" : "dark";
  localStorage.setItem(KEPT, theme.value);
}

export function startTheme(): void {
  effect(() => document.documentElement.setAttribute("data-theme", theme.value));
  system.addEventListener("change", () => {
    if (!kept()) theme.value = system.matches ? "dark" : "light";
  });
}
