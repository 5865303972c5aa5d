// Shared context: what agents wrote for each other, by whom, how long it is kept, its history, and who saw it.
import { useEffect, useState } from "preact/hooks";
import { ApiError, address, call, freshKey, route } from "../api";
import { AskAct, TextField, textOf } from "../parts/asks";
import { cli } from "../parts/copycli";
import { Diff } from "../parts/diff";
import { FormDialog } from "../parts/dialog";
import { useKeys } from "../parts/keys";
import { useLoad } from "../parts/load";
import { Pill } from "../parts/pill";
import { Act, CopyCli, Empty, Scroll, Shown } from "../parts/shown";
import { ago, moment, shortVersion, written } from "../parts/said";
import { left } from "../parts/time";
import { useNow } from "../parts/ticking";
import { say } from "../parts/toast";
import { Field, Value } from "../parts/value";
import { go, place, setQuery } from "../router";
import type { Entry, Event } from "../shapes";
import { Readers } from "./readers";
import { entryHistory, type Version } from "./versions";
import "../styles/context.css";

const KINDS = new Set(["entry.set", "entry.touched", "entries.removed"]);
const changes = (event: Event) => KINDS.has(event.kind);
const at = (namespace: string, key = "") => `/context/${encodeURIComponent(namespace)}${key ? `/${encodeURIComponent(key)}` : ""}`;

export function ContextPage({ values }: { values: Record<string, string> }) {
  const spaces = useLoad<{ namespaces: Record<string, number> }>("/v1/context", changes);
  return (
    <div class="page context">
      <header class="page-head">
        <h1>Context</h1>
        <span class="grow" />
        <NewEntry namespace={values.namespace ?? ""} />
      </header>
      <Shown of={spaces}>{({ namespaces }) => <Spaces namespaces={namespaces} values={values} />}</Shown>
    </div>
  );
}

function Spaces({ namespaces, values }: { namespaces: Record<string, number>; values: Record<string, string> }) {
  const all = Object.entries(namespaces);
  if (!all.length)
    return (
      <Empty title="No shared context yet" command={cli("context", "set", "spec", "login", "Sign in with a password")}>
        What an agent writes with <code>turn.context.set</code> appears here, and so does what you write.
      </Empty>
    );
  const namespace = values.namespace ?? all[0]?.[0] ?? "";
  return (
    <div class="spaces">
      <nav class="card" aria-label="Namespaces">
        <ul class="plain">
          {all.map(([name, number]) => (
            <li key={name}>
              <a href={at(name)} aria-current={name === namespace ? "true" : undefined}>
                <span class="one-line">{name}</span>
                <small>{number}</small>
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <Entries key={namespace} namespace={namespace} chosen={values.key ?? ""} />
    </div>
  );
}

function Entries({ namespace, chosen }: { namespace: string; chosen: string }) {
  const prefix = place.value.query.get("prefix") ?? "";
  const loaded = useLoad<{ entries: Entry[] }>(address(route("context", namespace), { limit: 1_000, prefix }), changes);
  const entries = loaded.data?.entries ?? [];
  const index = entries.findIndex((entry) => entry.key === chosen);
  const move = (by: number) => {
    const next = entries[Math.max(0, Math.min(entries.length - 1, index + by))];
    if (next) go(at(namespace, next.key), { replace: true });
  };
  useKeys("Context", [
    { key: "j", does: "next entry", run: () => move(1) },
    { key: "k", does: "entry before", run: () => move(-1) },
  ]);
  const time = useNow();
  return (
    <div class="entries">
      <input
        class="field small"
        type="search"
        aria-label="Beginning of the key"
        placeholder="beginning of the key"
        value={prefix}
        onChange={(event) => setQuery({ prefix: event.currentTarget.value.trim() })}
      />
      <Shown of={loaded}>
        {({ entries: all }) =>
          all.length ? (
            <Scroll label="Entries">
              <table class="table">
                <thead>
                  <tr>
                    <th>Key</th>
                    <th>Value</th>
                    <th>Author</th>
                    <th class="num">Version</th>
                    <th class="num">Changed</th>
                    <th class="num">Kept for</th>
                  </tr>
                </thead>
                <tbody>
                  {all.map((entry) => (
                    <tr key={entry.key} class={entry.key === chosen ? "at" : undefined}>
                      <td class="entry-key">
                        <a class="mono" href={at(namespace, entry.key)}>
                          {entry.key}
                        </a>
                      </td>
                      <td class="entry-value">
                        <span class="one-line">{written(entry.value).slice(0, 160)}</span>
                      </td>
                      <td class="entry-author one-line">{entry.agent || "people"}</td>
                      <td class="num mono" title={String(entry.version)}>
                        {shortVersion(entry.version)}
                      </td>
                      <td class="num">{ago(entry.updated_at, time)}</td>
                      <td class="num">{entry.expires_at ? left(entry.expires_at - time) : "–"}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </Scroll>
          ) : (
            <Empty title={prefix ? "No key begins like this" : "This namespace is empty"} />
          )
        }
      </Shown>
      {chosen && <EntryView key={chosen} namespace={namespace} name={chosen} />}
    </div>
  );
}

function EntryView({ namespace, name }: { namespace: string; name: string }) {
  const loaded = useLoad<Entry>(route("context", namespace, name), changes);
  return (
    <section class="card entry" aria-label={`${namespace}/${name}`}>
      <Shown of={loaded}>{(entry) => <EntryCard entry={entry} reload={loaded.reload} />}</Shown>
      <History namespace={namespace} name={name} version={loaded.data?.version ?? 0} />
      <Readers namespace={namespace} name={name} />
    </section>
  );
}

function EntryCard({ entry, reload }: { entry: Entry; reload: () => void }) {
  const time = useNow();
  const [edits, setEdits] = useState(false);
  return (
    <>
      <header class="entry-head">
        <h2 class="mono">
          {entry.namespace}/{entry.key}
        </h2>
        <Pill tone={entry.trust === "trusted" ? "done" : "cash"}>{entry.trust}</Pill>
        <span class="grow" />
        <Act scope="run" onClick={() => setEdits(true)}>
          Edit
        </Act>
        <AskAct
          scope="run"
          verb="Remove"
          bad
          title={`Remove ${entry.namespace}/${entry.key}?`}
          command={cli("context", "rm", entry.namespace, entry.key)}
          send={async () => {
            await call("DELETE", route("context", entry.namespace, entry.key));
            say(`${entry.namespace}/${entry.key} is removed`);
            go(at(entry.namespace), { replace: true });
          }}
        >
          <p class="quiet">Agents do not find it any more. The journal still has what it said, until it is pruned.</p>
        </AskAct>
      </header>
      <div class="entry-text">
        <Value value={entry.value} />
      </div>
      <dl class="fields">
        <Field name="author">
          {entry.agent || "people"}
          {entry.chain.length > 1 && <span class="faint"> ({entry.chain.join(" → ")})</span>}
        </Field>
        <Field name="version">
          {entry.version} <code class="faint">{entry.digest}</code>
        </Field>
        <Field name="changed">{moment(entry.updated_at)}</Field>
        <Field name="kept">{entry.expires_at ? `until ${moment(entry.expires_at)} (${left(entry.expires_at - time)})` : "until it is removed"}</Field>
      </dl>
      {edits && <EditDialog entry={entry} onClose={() => (setEdits(false), reload())} />}
    </>
  );
}

/** Write a value. `version` is the one that the person saw: if an agent wrote meanwhile, the server says so. */
async function write(namespace: string, key: string, form: FormData, isText: boolean, version: number): Promise<void> {
  const text = String(form.get("value") ?? "");
  let value: unknown = text;
  if (!isText)
    try {
      value = JSON.parse(text);
    } catch (error) {
      throw new Error(`This is not JSON: ${String(error instanceof Error ? error.message : error)}`, { cause: error });
    }
  const seconds = textOf(form, "ttl");
  if (seconds && !(Number(seconds) > 0)) throw new Error("Give the seconds as a number above 0, or leave the field empty.");
  const body = seconds ? { value, ttl: Number(seconds) } : { value };
  await call("PUT", route("context", namespace, key), body, freshKey(), { "If-Match": `"${version}"` });
  say(`${namespace}/${key} is written`);
}

function EditDialog({ entry, onClose }: { entry: Entry; onClose: () => void }) {
  const isText = typeof entry.value === "string";
  const before = written(entry.value);
  const [seen] = useState(entry.version); // a version that came meanwhile was not what the person changed
  const [text, setText] = useState(before);
  return (
    <FormDialog
      title={`Write ${entry.namespace}/${entry.key}`}
      verb="Write"
      wide
      onClose={onClose}
      onSend={(form) => write(entry.namespace, entry.key, form, isText, seen)}
      aside={<CopyCli text={cli("context", "set", entry.namespace, entry.key, text, ...(isText ? [] : ["--as-json"]))} />}
    >
      <label>
        {isText ? "Text" : "JSON"}
        <textarea class="field mono" name="value" rows={10} autofocus onInput={(event) => setText(event.currentTarget.value)}>
          {before}
        </textarea>
      </label>
      <Expires />
      {text !== before && <Diff before={before} after={text} />}
    </FormDialog>
  );
}

function NewEntry({ namespace }: { namespace: string }) {
  async function make(form: FormData) {
    const [space, key] = [textOf(form, "namespace"), textOf(form, "key")];
    await write(space, key, form, form.get("json") === null, 0);
    go(at(space, key));
  }
  return (
    <AskAct scope="run" title="New entry" verb="New entry" does="Write" send={make}>
      <TextField label="Namespace" name="namespace" value={namespace} required autofocus={!namespace} />
      <TextField label="Key" name="key" required autofocus={Boolean(namespace)} />
      <label>
        Value
        <textarea class="field mono" name="value" rows={5} required />
      </label>
      <label class="check">
        <input type="checkbox" name="json" /> The value is JSON
      </label>
      <Expires />
    </AskAct>
  );
}

const Expires = () => <TextField label="Seconds until it expires; empty for never" name="ttl" inputMode="decimal" />;

function History({ namespace, name, version }: { namespace: string; name: string; version: number }) {
  const [all, setAll] = useState<Version[]>();
  const [whole, setWhole] = useState(true);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    let isOver = false;
    entryHistory(namespace, name).then(
      (found) => {
        if (isOver) return;
        setAll(found.versions);
        setWhole(found.whole);
      },
      (error: unknown) => !isOver && setProblem(error instanceof ApiError ? error.message : String(error)),
    );
    return () => {
      isOver = true;
    };
  }, [namespace, name, version]);
  if (problem) return <p class="quiet entry-part">The history could not be read: {problem}</p>;
  if (!all) return null;
  return (
    <div class="entry-part">
      <h3>History</h3>
      {!all.length && <p class="quiet">The journal has no version of it any more.</p>}
      <ol class="versions">
        {all.map((one, index) => (
          <VersionRow key={`${one.version} ${one.at}`} one={one} before={all[index + 1]} />
        ))}
      </ol>
      {!whole && <p class="faint">Only the latest part of the journal was read.</p>}
    </div>
  );
}

function VersionRow({ one, before }: { one: Version; before: Version | undefined }) {
  return (
    <li>
      <details>
        <summary>
          <b>{one.removed ? "removed" : `v${shortVersion(one.version)}`}</b>
          <span class="one-line">{one.by || one.agent || "people"}</span>
          <span class="faint">{moment(one.at)}</span>
        </summary>
        {one.run && (
          <p class="faint">
            in run{" "}
            <a class="mono" href={`/runs/${one.run}`}>
              {one.run}
            </a>
          </p>
        )}
        {one.removed ? (
          <p class="quiet">{one.removed}</p>
        ) : before && !before.removed ? (
          <Diff before={written(before.value)} after={written(one.value)} />
        ) : (
          <Value value={one.value} />
        )}
      </details>
    </li>
  );
}

