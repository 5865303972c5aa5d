// The keys with which programs and people call the workspace.
import { useState } from "preact/hooks";
import { call, freshKey, route } from "../api";
import { cli } from "../parts/copycli";
import { Dialog, FormDialog } from "../parts/dialog";
import { useLoad } from "../parts/load";
import { Pill } from "../parts/pill";
import { Act, Command, CopyCli, Empty, Scroll, Shown } from "../parts/shown";
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
  const [asks, setAsks] = useState(false);
  const [made, setMade] = useState<{ name: string; key: string }>();
  return (
    <section>
      <div class="section-head">
        <h2>Access</h2>
        <span class="faint">a key opens this workspace and no other; it is shown once</span>
        <span class="grow" />
        <Act scope="admin" onClick={() => setAsks(true)}>
          Make an access
        </Act>
      </div>
      <Shown of={loaded}>
        {({ access }) =>
          access.length ? <Rows access={access} /> : <Empty title="No access yet" command={cli("access", "make", "ci", "--scope", "run")}>Only this machine can call the server now, with its own token.</Empty>
        }
      </Shown>
      {asks && <MakeDialog onClose={() => setAsks(false)} onMade={(one) => (setMade(one), loaded.reload())} />}
      {made && (
        <Dialog title={`The key of ${made.name}`} onClose={() => setMade(undefined)}>
          <div class="once">
            <b>Copy it now: it is not shown again.</b>
            <Command text={made.key} />
          </div>
          <p class="quiet">
            Programs send it as <code>Authorization: Bearer …</code>, commands find it in <code>REMIT_KEY</code>.
          </p>
          <div class="acts">
            <span class="grow" />
            <button class="button main" onClick={() => setMade(undefined)}>
              I have it
            </button>
          </div>
        </Dialog>
      )}
    </section>
  );
}

function Rows({ access }: { access: AccessRow[] }) {
  const time = useNow();
  const [revokes, setRevokes] = useState<AccessRow>();
  return (
    <Scroll label="Accesses">
      <table class="table">
        <thead>
          <tr>
            <th>Name</th>
            <th>State</th>
            <th>Scopes</th>
            <th>Acts as</th>
            <th>Bounds</th>
            <th class="num">Expires</th>
            <th class="num">Used</th>
            <th>
                      <span class="unseen">What can be done</span>
                    </th>
          </tr>
        </thead>
        <tbody>
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
                    <Act scope="admin" class="button small no" label={`Revoke ${one.name}`} onClick={() => setRevokes(one)}>
                      Revoke
                    </Act>
                  )}
                </div>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {revokes && (
        <FormDialog
          title={`Revoke ${revokes.name}?`}
          verb="Revoke"
          bad
          onClose={() => setRevokes(undefined)}
          onSend={async () => {
            await call("DELETE", route("access", revokes.id));
            say(`${revokes.name} is revoked`);
          }}
          aside={<CopyCli text={cli("access", "revoke", revokes.id)} />}
        >
          <p class="quiet">Every server refuses its key within a second, and its streams end. This cannot be taken back.</p>
        </FormDialog>
      )}
    </Scroll>
  );
}

function MakeDialog({ onClose, onMade }: { onClose: () => void; onMade: (made: { name: string; key: string }) => void }) {
  async function make(form: FormData) {
    const name = String(form.get("name")).trim();
    const days = String(form.get("days") ?? "").trim();
    const agent = String(form.get("agent") ?? "").trim();
    const scopes = form.getAll("scope").map(String);
    if (!scopes.length) throw new Error("Choose at least one scope.");
    if (days && !(Number(days) > 0)) throw new Error("Give the days as a number above 0, or leave the field empty.");
    const body = { name, scopes, ...(days ? { seconds: Number(days) * 86_400 } : {}), ...(agent ? { agent } : {}) };
    const { key } = await call<{ key: string }>("POST", "/v1/access", body, freshKey());
    onMade({ name, key });
  }
  return (
    <FormDialog title="Make an access" verb="Make" onSend={make} onClose={onClose} aside={<CopyCli text={cli("access", "make", "NAME", "--scope", "run")} />}>
      <label>
        Name, for lists and the journal
        <input class="field" name="name" required maxLength={200} autofocus />
      </label>
      <fieldset>
        <legend>Scopes</legend>
        {SCOPES.map(([scope, means]) => (
          <label key={scope} class="check">
            <input type="checkbox" name="scope" value={scope} checked={scope === "read" || undefined} />
            <b>{scope}</b> <span class="faint">{means}</span>
          </label>
        ))}
      </fieldset>
      <label>
        Days until it expires; empty for never
        <input class="field" name="days" inputMode="decimal" />
      </label>
      <label>
        Agent in whose name it asks; empty for the owner
        <input class="field" name="agent" />
      </label>
    </FormDialog>
  );
}
