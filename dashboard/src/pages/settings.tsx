// Settings of the workspace: who may call it, where events are sent, what runs by the clock, which processes work.
import type { ComponentType } from "preact";
import { place, setQuery } from "../router";
import { may, session } from "../session";
import { signOut } from "../signing";
import { Accesses } from "./access";
import { Hooks } from "./hooks";
import { Keep, Schedules, Workers } from "./upkeep";
import "../styles/settings.css";

const TABS: [string, string, ComponentType][] = [
  ["access", "Access", Accesses],
  ["hooks", "Hooks", Hooks],
  ["schedules", "Schedules", Schedules],
  ["workers", "Workers", Workers],
  ["keep", "Retention", Keep],
];

export function SettingsPage() {
  const chosen = TABS.find(([name]) => name === place.value.query.get("tab")) ?? TABS[may("admin") ? 0 : 3];
  const [name, , Part] = chosen as [string, string, ComponentType];
  const own = session.value;
  return (
    <div class="page settings">
      <header class="page-head">
        <h1>Settings</h1>
        <span class="sub one-line">
          workspace <b>{own?.workspace}</b> · you are <b>{own?.by}</b>, with {own?.scopes.join(", ")}
        </span>
        <span class="grow" />
        <button class="button" onClick={() => void signOut()}>
          Sign out
        </button>
      </header>
      <div class="tabs" role="tablist" aria-label="Settings">
        {TABS.map(([tab, label]) => (
          <button
            key={tab}
            type="button"
            role="tab"
            id={`tab-${tab}`}
            aria-selected={tab === name}
            aria-controls="tab-panel"
            onClick={() => setQuery({ tab })}
          >
            {label}
          </button>
        ))}
      </div>
      <div id="tab-panel" role="tabpanel" aria-labelledby={`tab-${name}`} tabIndex={0}>
        <Part />
      </div>
    </div>
  );
}
