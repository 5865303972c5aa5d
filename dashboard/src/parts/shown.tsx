// What is shown instead of data: nothing there yet, loading, an error, no permission. And copying a command.
import type { ComponentChildren } from "preact";
import type { ApiError } from "../api";
import { may } from "../session";
import { CopyAsCli, copied } from "./copycli";
import { say } from "./toast";
import type { Loaded } from "./load";

/** Put a text on the clipboard; where the browser does not allow it, show the text. */
async function copy(text: string): Promise<void> {
  say((await copied(text)) ? `Copied: ${text}` : `Copy this: ${text}`);
}

/** A command that can be copied. */
export function Command({ text }: { text: string }) {
  return (
    <span class="command">
      <code>{text}</code>
      <button class="link" onClick={() => void copy(text)} aria-label={`Copy ${text}`}>
        Copy
      </button>
    </span>
  );
}

/** The same act on the command line. */
export function CopyCli({ text }: { text: string }) {
  return <CopyAsCli command={text} say={say} />;
}

interface EmptyOf {
  title: string;
  command?: string;
  children?: ComponentChildren;
}

/** Nothing is here yet, and what fills it. */
export function Empty({ title, command, children }: EmptyOf) {
  return (
    <div class="empty">
      <svg viewBox="0 0 64 40" width="64" height="40" aria-hidden="true">
        <path d="M12 20C26 20 26 8 44 8M12 20c14 0 14 12 32 12" />
        <circle cx="10" cy="20" r="5" />
        <circle class="o" cx="48" cy="8" r="5" />
        <circle class="o" cx="48" cy="32" r="5" />
      </svg>
      <p class="what">{title}</p>
      {children && <p class="quiet">{children}</p>}
      {command && <Command text={command} />}
    </div>
  );
}

/** Grey lines where rows will be. */
export function Loading({ rows = 4 }: { rows?: number }) {
  return (
    <div class="loading" role="status">
      <span class="unseen">Loading</span>
      {Array.from({ length: rows }, (_, at) => (
        <i key={at} />
      ))}
    </div>
  );
}

/** What went wrong, and a way to try again. */
export function Trouble({ problem, again }: { problem: ApiError; again?: () => void }) {
  const title =
    problem.status === 0
      ? "The server does not answer"
      : problem.status === 403
        ? "This key may not see this"
        : problem.status === 404
          ? "It is not there"
          : problem.status === 413
            ? "This is too large to show"
            : "This could not be read";
  return (
    <div class="empty" role="alert">
      <p class="what">{title}</p>
      <p class="quiet">{problem.message}</p>
      {again && problem.status !== 403 && (
        <button class="button" onClick={again}>
          Try again
        </button>
      )}
    </div>
  );
}

/** Show what was loaded; grey lines or the error until then. */
export function Shown<T>({ of, children, rows }: { of: Loaded<T>; children: (data: T) => ComponentChildren; rows?: number }) {
  if (of.data !== undefined) return <>{children(of.data)}</>;
  if (of.problem) return <Trouble problem={of.problem} again={of.reload} />;
  return <Loading {...(rows === undefined ? {} : { rows })} />;
}

/** A box whose content may be wider than the screen; the keyboard can scroll it. */
export function Scroll({ label, class: look = "", children }: { label: string; class?: string; children: ComponentChildren }) {
  return (
    <div class={`card scroll ${look}`} role="region" aria-label={label} tabIndex={0}>
      {children}
    </div>
  );
}

interface ActOf {
  scope: string;
  onClick: () => void;
  children: ComponentChildren;
  class?: string;
  off?: string; // why it cannot be done, apart from the scope
  label?: string;
  keys?: string;
}

/** Why the session may not do what needs this scope; "" if it may. */
export function lacks(scope: string): string {
  return may(scope) ? "" : `This needs a key with the scope ${scope}. An admin makes one with: remit access make`;
}

/** A button that changes something. Without the scope it stays readable, does nothing, and says why. */
export function Act({ scope, onClick, children, class: look = "button", off = "", label, keys }: ActOf) {
  const why = lacks(scope) || off;
  return (
    <button
      type="button"
      class={look}
      aria-disabled={why ? true : undefined}
      aria-label={label}
      title={why || undefined}
      aria-keyshortcuts={keys}
      onClick={() => (why ? say(why, { bad: true }) : onClick())}
    >
      {children}
    </button>
  );
}

/** A table in a box; the heads of figures are given as [text, "num"], and `acts` says that the last column has buttons. */
export function Table({ label, heads, acts = false, children }: { label: string; heads: readonly (string | [string, "num"])[]; acts?: boolean; children: ComponentChildren }) {
  return (
    <Scroll label={label}>
      <table class="table">
        <thead>
          <tr>
            {heads.map((head) => (typeof head === "string" ? <th key={head}>{head}</th> : <th key={head[0]} class="num">{head[0]}</th>))}
            {acts && (
              <th>
                <span class="unseen">What can be done</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </Scroll>
  );
}
