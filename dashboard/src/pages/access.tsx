// The keys with which programs and people call the workspace.
import { useState } from "preact/hooks";
import { call, freshKey, route } from "../api";
import { AskAct, Once, TextField, textOf } from "../parts/asks";
import { cli } from "../parts/copycli";
import { useLoad } from "../parts/load";
import { Pill } from "../parts/pill";
import { Empty, Shown, Table } from "../parts/shown";
import { ago, ahead, moment } from "../parts/said";
import { useNow } from "../parts/ticking";
import { say } from "../parts/toast";
import { toneOf } from "../parts/tone";
import { Words } from "../parts/value";
import type { AccessRow } from "../shapes";

const SCOPES: [string, string][] = [
  ["read", "see everything in the workspace"],
  ["run", "start, cancel and retry tasks, write context"],
  ["approve", "answer questions"],
  ["admin", "all of it, and keys, hooks, money, breakers"],
];

export function Accesses() {
  const loaded = useLoad<{ access: AccessRow[] }>("/v1/access", (event) => event.kind.startsWith("access."));
  const [made, setMade] = useState<{ name: string; key: string }>();
  return (
    <section>
      <div class="section-head">
        <h2>Access keys</h2>
        <span class="faint">a key opens this workspace and no other; it is shown once</span>
        <span class="grow" />
        <MakeAccess onMade={(one) => (setMade(one), loaded.reload())} />
      </div>
      <Shown of={loaded}>
        {({ access }) =>
          access.length ? <Rows access={access} /> : <Empty title="No access keys yet" command={cli("access", "make", "ci", "--scope", "run")}>Only this machine can call the server now, with its own token.</Empty>
        }
      </Shown>
      {made && (
        <Once title={`The access key ${made.name}`} secret={made.key} onClose={() => setMade(undefined)}>
          Programs send it as <code>Authorization: Bearer …</code>, commands find it in <code>REMIT_KEY</code>.
        </Once>
      )}
    </section>
  );
}

function Rows({ access }: { access: AccessRow[] }) {
  const time = useNow();
  return (
    <Table label="Access keys" heads={["Name", "State", "Scopes", "Acts as", "Bounds", ["Expires", "num"], ["Used", "num"]]} acts>
      {access.map((one) => (
        <tr key={one.id} class={one.state === "active" ? undefined : "over"}>
          <td class="set-name">
            <b class="one-line">{one.name}</b>
            <span class="sub mono">{one.id}</span>
          </td>
          <td title={one.revoked_at ? `by ${one.revoked_by}, ${moment(one.revoked_at)}` : `made by ${one.made_by}, ${moment(one.made_at)}`}>
            <Pill tone={toneOf(one.state)}>{one.state}</Pill>
          </td>
          <td>
            <Words words={one.scopes} />
          </td>
          <td class="one-line">{one.agent || "the owner"}</td>
          <td>
            <Words words={Object.entries(one.bounds).map(([name, value]) => `${name} ${JSON.stringify(value)}`)} none="none" />
          </td>
          <td class="num">{one.expires_at ? ahead(one.expires_at, time) : "never"}</td>
          <td class="num">{ago(one.used_at, time)}</td>
          <td>
            <div class="acts">
              {one.state === "active" && (
                <AskAct
                  scope="admin"
                  verb="Revoke"
                  bad
                  small
                  label={`Revoke ${one.name}`}
                  title={`Revoke ${one.name}?`}
                  command={cli("access", "revoke", one.id)}
                  send={async () => {
                    await call("DELETE", route("access", one.id));
                    say(`${one.name} is revoked`);
                  }}
                >
                  <p class="quiet">Every server refuses it within a second, and its streams end. This cannot be taken back.</p>
                </AskAct>
              )}
            </div>
          </td>
        </tr>
      ))}
    </Table>
  );
}

function MakeAccess({ onMade }: { onMade: (made: { name: string; key: string }) => void }) {
  async function make(form: FormData) {
    const name = textOf(form, "name");
    const days = textOf(form, "days");
    const agent = textOf(form, "agent");
    const scopes = form.getAll("scope").map(String);
    if (!scopes.length) throw new Error("Choose at least one scope.");
    if (days && !(Number(days) > 0)) throw new Error("Give the days as a number above 0, or leave the field empty.");
    const body = { name, scopes, ...(days ? { seconds: Number(days) * 86_400 } : {}), ...(agent ? { agent } : {}) };
    const { key } = await call<{ key: string }>("POST", "/v1/access", body, freshKey());
    onMade({ name, key });
  }
  return (
    <AskAct scope="admin" title="Create an access key" verb="Create an access key" does="Create" send={make} command={cli("access", "make", "NAME", "--scope", "run")}>
      <TextField label="Name, for lists and the journal" name="name" required maxLength={200} autofocus />
      <fieldset>
        <legend>Scopes</legend>
        {SCOPES.map(([scope, means]) => (
          <label key={scope} class="check">
            <input type="checkbox" name="scope" value={scope} checked={scope === "read" || undefined} />
            <b>{scope}</b> <span class="faint">{means}</span>
          </label>
        ))}
      </fieldset>
      <TextField label="Days until it expires; empty for never" name="days" inputMode="decimal" />
      <TextField label="Agent in whose name it asks; empty for the owner" name="agent" />
    </AskAct>
  );
}
