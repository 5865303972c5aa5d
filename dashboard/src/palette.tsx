// The palette: type a few letters, and go to a page, a run, an agent or a question.
import { useEffect, useRef, useState } from "preact/hooks";
import { call, sentenceOf } from "./api";
import { LINKS } from "./links";
import { headline, open } from "./pages/questions";
import { Dialog } from "./parts/dialog";
import { firstLine } from "./parts/said";
import { say } from "./parts/toast";
import { go } from "./router";
import { signOut } from "./signing";
import type { AgentCard, RunRow } from "./shapes";
import { toggleTheme } from "./theme";

interface Choice {
  kind: string;
  name: string;
  also: string;
  run: () => void;
}

const MOST = 12;

/** Return the choices whose words contain all that was typed, those that begin with it first. */
export function matching<T extends { name: string; also: string }>(all: T[], typed: string): T[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = all.filter(({ name, also }) => words.every((word) => `${name} ${also}`.toLowerCase().includes(word)));
  const begins = (one: T) => (words[0] && one.name.toLowerCase().startsWith(words[0]) ? 0 : 1);
  return fits.toSorted((one, other) => begins(one) - begins(other)).slice(0, MOST);
}

function useChoices(onHelp: () => void): Choice[] {
  const [runs, setRuns] = useState<RunRow[]>([]);
  const [agents, setAgents] = useState<AgentCard[]>([]);
  useEffect(() => {
    const quietly = (error: unknown) => say(sentenceOf(error), { bad: true });
    call<{ runs: RunRow[] }>("GET", "/v1/runs?limit=100").then((found) => setRuns(found.runs), quietly);
    call<{ agents: AgentCard[] }>("GET", "/v1/agents").then((found) => setAgents(found.agents), quietly);
  }, []);
  return [
    ...LINKS.map(([address, name]) => ({ kind: "page", name, also: "", run: () => go(address) })),
    ...(open.value ?? []).map((one) => ({ kind: "question", name: headline(one), also: one.id, run: () => go(`/approvals/${one.id}`) })),
    ...runs.map((one) => ({ kind: "run", name: firstLine(one.task), also: `${one.id} ${one.agent} ${one.state}`, run: () => go(`/runs/${one.id}`) })),
    ...agents.map((one) => ({ kind: "agent", name: one.name, also: one.role, run: () => go(`/agents/${encodeURIComponent(one.name)}`) })),
    { kind: "command", name: "Light or dark", also: "theme", run: toggleTheme },
    { kind: "command", name: "Show the keys", also: "help keyboard", run: onHelp },
    {
      kind: "command",
      name: "Sign out",
      also: "session",
      run: () => void signOut().catch((error: unknown) => say(sentenceOf(error), { bad: true })),
    },
  ];
}

export function Palette({ onClose, onHelp }: { onClose: () => void; onHelp: () => void }) {
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const list = useRef<HTMLUListElement>(null);
  const found = matching(useChoices(onHelp), typed);
  const here = Math.min(at, found.length - 1);
  useEffect(() => list.current?.children[here]?.scrollIntoView({ block: "nearest" }), [here]);

  function take(one: Choice | undefined) {
    if (!one) return;
    onClose();
    one.run();
  }
  function pressed(event: KeyboardEvent) {
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (by) {
      event.preventDefault();
      setAt(Math.max(0, Math.min(found.length - 1, here + by)));
    }
    if (event.key === "Enter") {
      event.preventDefault();
      take(found[here]);
    }
  }
  return (
    <Dialog title="Go to" onClose={onClose}>
      <div class="palette">
        <input
          class="field"
          role="combobox"
          aria-label="A page, a run, an agent or a command"
          aria-expanded="true"
          aria-controls="palette-list"
          aria-activedescendant={found[here] ? `palette-${here}` : undefined}
          placeholder="A page, a run, an agent, a command"
          autofocus
          value={typed}
          onInput={(event) => (setTyped(event.currentTarget.value), setAt(0))}
          onKeyDown={pressed}
        />
        <ul id="palette-list" role="listbox" aria-label="Choices" ref={list}>
          {found.map((one, index) => (
            <li
              key={`${one.kind} ${one.name} ${one.also}`}
              id={`palette-${index}`}
              role="option"
              aria-selected={index === here}
              onClick={() => take(one)}
              onMouseMove={() => setAt(index)}
            >
              <span class="kind">{one.kind}</span>
              <span class="one-line">{one.name}</span>
              <span class="faint one-line">{one.also}</span>
            </li>
          ))}
        </ul>
        {!found.length && <p class="quiet">Nothing has these letters.</p>}
      </div>
    </Dialog>
  );
}
