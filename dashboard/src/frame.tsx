// What surrounds every page: the bar, messages, the palette and the keys that work everywhere.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Help } from "./help";
import { breakers, startBreakers } from "./pages/breakers";
import { open, startQuestions } from "./pages/questions";
import { cap, startToday, today } from "./pages/today";
import { LINKS } from "./links";
import { Palette } from "./palette";
import { startKeys, useKeys } from "./parts/keys";
import { dollars } from "./parts/said";
import { BurnLine } from "./parts/pill";
import { useNow } from "./parts/ticking";
import { Toasts } from "./parts/toast";
import { go, path } from "./router";
import { live, liveText } from "./stream";
import { theme, toggleTheme } from "./theme";
import "./styles/frame.css";
import "./styles/parts.css";

const palette = signal(false);
const help = signal(false);

function isAt(address: string): boolean {
  return address === "/" ? path.value === "/" || path.value.startsWith("/runs") : path.value.startsWith(address);
}

export function Frame({ children }: { children: ComponentChildren }) {
  useEffect(() => {
    const stops = [startKeys(), startQuestions(), startBreakers(), startToday()];
    addEventListener("keydown", opensPalette);
    return () => {
      removeEventListener("keydown", opensPalette);
      for (const stop of stops) stop();
    };
  }, []);
  const bar = useRef<HTMLElement>(null);
  useEffect(() => inSight(bar.current), [path.value]);
  useKeys("Everywhere", [
    ...LINKS.map(([address, name, key]) => ({ key: `g ${key}`, does: `go to ${name}`, run: () => go(address) })),
    { key: "?", does: "show the keys", run: () => (help.value = true) },
    { key: "t", does: "light or dark", run: toggleTheme },
  ]);
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        Skip to the page
      </a>
      <header class="top">
        <a class="brand" href="/">
          <Mark />
          remit
        </a>
        <nav aria-label="Pages" ref={bar}>
          {LINKS.map(([address, name]) => (
            <a key={address} href={address} aria-current={isAt(address) ? "page" : undefined}>
              {name}
              {name === "Approvals" && <Badge />}
            </a>
          ))}
        </nav>
        <div class="right">
          <BreakerPill />
          <TodayPill />
          <LivePill />
          <button class="icon" onClick={toggleTheme} aria-label={theme.value === "dark" ? "Light theme" : "Dark theme"}>
            {theme.value === "dark" ? <Moon /> : <Sun />}
          </button>
          <button class="icon wide" onClick={() => (palette.value = true)} title="Find a page, a run, an agent">
            <span class="unseen">Commands </span>
            <kbd>{/Mac|iPhone|iPad/.test(navigator.userAgent) ? "⌘K" : "Ctrl K"}</kbd>
          </button>
        </div>
      </header>
      <LiveBanner />
      <main id="main" tabIndex={-1}>
        {children}
      </main>
      <Toasts />
      <Title />
      {palette.value && <Palette onClose={() => (palette.value = false)} onHelp={() => (help.value = true)} />}
      {help.value && <Help onClose={() => (help.value = false)} />}
    </>
  );
}

/** Scroll the bar, on a phone, to the page that is shown. */
function inSight(bar: HTMLElement | null): void {
  const shown = bar?.querySelector<HTMLElement>("[aria-current]");
  if (bar && shown) bar.scrollLeft = shown.offsetLeft - (bar.clientWidth - shown.offsetWidth) / 2;
}

function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function opensPalette(event: KeyboardEvent): void {
  if (event.key.toLowerCase() !== "k" || !(event.metaKey || event.ctrlKey)) return;
  event.preventDefault();
  if (!document.querySelector("dialog[open]")) palette.value = true;
}

/** The title of the browser's tab: how many wait comes first, because tabs are narrow. */
function Title() {
  const number = open.value?.length ?? 0;
  const page = LINKS.find(([address]) => isAt(address))?.[1] ?? "remit";
  const isRun = path.value.startsWith("/runs/");
  useEffect(() => {
    const told = document.title.replace(/^\(\d+\) /, "");
    const name = isRun && told.endsWith("· remit") ? told : `${isRun ? "Run" : page} · remit`;
    document.title = number ? `(${number}) ${name}` : name;
  }, [number, path.value]);
  return null;
}

function Badge() {
  const number = open.value?.length ?? 0;
  if (!number) return null;
  return (
    <span class="badge">
      {number > 99 ? "99+" : number}
      <span class="unseen"> waiting</span>
    </span>
  );
}

function BreakerPill() {
  const tripped = (breakers.value ?? []).filter((one) => one.state !== "closed");
  const first = tripped[0];
  if (!first) return null;
  const address = tripped.length === 1 ? `/agents/${encodeURIComponent(first.agent)}` : "/agents";
  return (
    <a class="pill t-bad" href={address} title={first.why}>
      <i aria-hidden="true" />
      <span class="one-line">{tripped.length === 1 ? `${first.agent} is out` : `${tripped.length} breakers open`}</span>
    </a>
  );
}

function TodayPill() {
  const spent = today.value;
  if (spent === undefined) return null;
  const most = cap.value;
  return (
    <a class="today" href="/spend" title={most ? `${dollars(spent)} of ${dollars(most)} in 24 hours` : "Spent today"}>
      <span>
        <b>{dollars(spent)}</b> {most ? `of ${dollars(most)}` : "today"}
      </span>
      {most ? <BurnLine spent={spent} of={most} /> : null}
    </a>
  );
}

function LivePill() {
  const { state, catching } = live.value;
  const words = { connecting: "connecting", live: "live", paused: "reconnecting", gone: "server gone", revoked: "revoked" };
  return (
    <span class={`live ${state}`} role="status">
      <i aria-hidden="true" />
      {catching ? "catching up" : words[state]}
    </span>
  );
}

/** What a person must know while the live view is interrupted. */
function LiveBanner() {
  const { state, catching } = live.value;
  return state === "paused" || state === "gone" || catching ? <Interrupted /> : null;
}

function Interrupted() {
  const now = useNow();
  const { state } = live.value;
  return (
    <p class={`banner ${state}`} role="status">
      {liveText(live.value, now / 1_000)}
      {state === "gone" && (
        <>
          . What is shown may be old; <code>remit serve</code> starts it again.
        </>
      )}
    </p>
  );
}

function Mark() {
  return (
    <svg viewBox="0 0 24 24" width="20" height="20" aria-hidden="true">
      <path d="M6 12C12 12 11 6 17 6" fill="none" stroke="currentColor" stroke-width="2" />
      <path d="M6 12c6 0 5 6 9 6" fill="none" stroke="var(--bad-m)" stroke-width="2" stroke-dasharray="2 2.4" />
      <circle cx="5" cy="12" r="3.2" fill="currentColor" />
      <circle cx="18" cy="6" r="3.2" fill="var(--cash-m)" />
      <circle cx="18" cy="18" r="2.6" fill="none" stroke="var(--bad-m)" stroke-width="1.6" stroke-dasharray="2 1.6" />
    </svg>
  );
}

function Sun() {
  return (
    <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <circle cx="8" cy="8" r="3" fill="currentColor" />
      <path d="M8 1v2M8 13v2M1 8h2M13 8h2M3 3l1.4 1.400M11.6 11.6 13 13M3 13l1.4-1.400M11.6 4.4 13 3" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" />
    </svg>
  );
}

function Moon() {
  return (
    <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d="M13.5 9.800A6 6 0 0 1 6.2 2.500a6 6 0 1 0 7.3 7.300z" fill="currentColor" />
    </svg>
  );
}
