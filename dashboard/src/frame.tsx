// What surrounds every page.
import type { ComponentChildren } from "preact";
import { path } from "./router";
import "./styles/frame.css";

const LINKS: [string, string][] = [
  ["/", "Runs"],
  ["/approvals", "Approvals"],
  ["/agents", "Agents"],
  ["/context", "Context"],
  ["/spend", "Spend"],
  ["/settings", "Settings"],
];

function isAt(link: string): boolean {
  return link === "/" ? path.value === "/" || path.value.startsWith("/runs") : path.value.startsWith(link);
}

export function Frame({ children }: { children: ComponentChildren }) {
  return (
    <>
      <header class="top">
        <a class="brand" href="/">
          remit
        </a>
        <nav aria-label="Pages">
          {LINKS.map(([link, name]) => (
            <a key={link} href={link} aria-current={isAt(link) ? "page" : undefined}>
              {name}
            </a>
          ))}
        </nav>
      </header>
      <main>{children}</main>
    </>
  );
}
