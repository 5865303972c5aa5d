// Where the page is. A link inside the page is a plain <a href>: a click on it changes the address without a load.
import { computed, signal } from "@preact/signals";

export interface Place {
  path: string;
  query: URLSearchParams;
}

function here(): Place {
  return { path: location.pathname, query: new URLSearchParams(location.search) };
}

export const place = signal<Place>(here());
export const path = computed(() => place.value.path);

/** Go to another address of this page. With `replace` the way back does not lead here. */
export function go(address: string, { replace = false } = {}): void {
  history[replace ? "replaceState" : "pushState"](null, "", address);
  place.value = here();
}

/** Change parameters of the address; an empty value removes one. */
export function setQuery(changes: Record<string, string | null>): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const text = query.toString();
  go(text ? `${location.pathname}?${text}` : location.pathname, { replace: true });
}

/** Return the values in a path of a pattern such as /runs/:id, or null if it is another path. */
export function match(pattern: string, actual: string): Record<string, string> | null {
  const wanted = pattern.split("/");
  const given = actual.replace(/(.)\/$/, "$1").split("/");
  if (wanted.length !== given.length) return null;
  const found: Record<string, string> = {};
  for (const [at, one] of wanted.entries()) {
    const text = given[at] ?? "";
    if (!one.startsWith(":")) {
      if (one !== text) return null;
      continue;
    }
    try {
      found[one.slice(1)] = decodeURIComponent(text);
    } catch {
      return null;
    }
  }
  return found;
}

function followed(event: MouseEvent): void {
  if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
  if (link.pathname.startsWith("/v1/") || link.pathname === "/docs") return;
  event.preventDefault();
  go(link.pathname + link.search);
}

/** Follow the buttons of the browser and clicks on links. */
export function startRouter(): void {
  addEventListener("popstate", () => (place.value = here()));
  document.addEventListener("click", followed);
}
