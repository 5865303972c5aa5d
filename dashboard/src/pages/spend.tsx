// Money: what was spent, on what, against which limits, and what is not certain about it.
import { address, call, freshKey, route } from "../api";
import { AskAct, TextField, textOf, Why } from "../parts/asks";
import { cli } from "../parts/copycli";
import { type Loaded, useLoad } from "../parts/load";
import { many } from "../parts/money";
import { BurnLine } from "../parts/pill";
import { Act, CopyCli, Empty, Scroll, Shown, Table } from "../parts/shown";
import { ahead, dollars, figure, firstLine, now, percent } from "../parts/said";
import { SECOND } from "../parts/time";
import { say } from "../parts/toast";
import { place, setQuery } from "../router";
import type { Event, Figures, LimitUse, RunRow, SpendLine, Spending, UncertainCall } from "../shapes";
import { DayChart } from "./chart";
import { csv, download } from "./csv";
import "../styles/spend.css";

const PAYS = new Set(["credits.spent", "hold.settled", "hold.reconciled", "account.granted", "account.set"]);
const changes = (event: Event) => PAYS.has(event.kind);
const PERIODS: [string, string, number][] = [
  ["day", "24 hours", 1],
  ["week", "7 days", 7],
  ["month", "30 days", 30],
];
const GROUPS = ["agent", "model", "person", "session", "run"] as const;
type Group = (typeof GROUPS)[number];
const HEADS: Record<Group, string> = { agent: "Agent", model: "Model", person: "Person", session: "Session", run: "Run" };
const NAMELESS: Record<Group, string> = { agent: "(none)", model: "(no model)", person: "(nobody named)", session: "(none)", run: "(none)" };

interface Budget {
  unit: string;
  granted: number;
  available: number;
  reserved: number;
  lent: number;
  spent: number;
  overrun: number;
  state: string;
}

export function SpendPage() {
  const query = place.value.query;
  const days = PERIODS.find(([name]) => name === query.get("period"))?.[2];
  // Rounded to the hour, so that drawing the page again does not change the path.
  const since = days ? Math.floor((now() / SECOND - days * 86_400) / 3_600) * 3_600 * SECOND : undefined;
  const by = (group: string) => address("/v1/spend", { by: group, since });
  const group = GROUPS.find((one) => one === query.get("by")) ?? "agent";
  const daily = useLoad<Spending>(by("day"), changes);
  const grouped = useLoad<Spending>(by(group), changes);
  const runs = useLoad<Spending>(by("run"), changes);
  const models = useLoad<Spending>(by("model"), changes);
  return (
    <div class="page spend">
      <header class="page-head">
        <h1>Spend</h1>
        <select class="field small" aria-label="Period" value={query.get("period") ?? ""} onChange={(event) => setQuery({ period: event.currentTarget.value })}>
          <option value="">all time</option>
          {PERIODS.map(([name, label]) => (
            <option key={name} value={name}>
              {label}
            </option>
          ))}
        </select>
        <span class="grow" />
        <Grant />
      </header>
      <Shown of={daily}>
        {(told) =>
          told.lines.length || told.pruned ? (
            <>
              <Sums told={told} since={since} />
              <div class="card">
                <DayChart lines={told.lines} />
              </div>
              <Groups group={group} loaded={grouped} />
              <div class="two">
                <Costliest loaded={runs} />
                <Models loaded={models} />
              </div>
            </>
          ) : (
            <Empty title="Nothing was spent" command="remit demo">
              Paid calls of models, and what agents report with <code>turn.spend</code>, are counted here.
            </Empty>
          )
        }
      </Shown>
      <Budgets />
      <Uncertain />
    </div>
  );
}

function Sums({ told, since }: { told: Spending; since: number | undefined }) {
  const figures = useLoad<Figures>(address("/v1/analytics", { since }), (event) => event.kind === "hop.refused");
  const refusals = Object.entries(figures.data?.refusals ?? {}).toSorted((one, other) => other[1] - one[1]);
  const all = refusals.reduce((sum, [, number]) => sum + number, 0);
  const saved = figures.data?.refused_credits;
  return (
    <dl class="sums card">
      <div>
        <dt>spent</dt>
        <dd class="cash-text">{dollars(told.total.credits)}</dd>
        <dd class="faint">{many(told.total.calls, "paid call")}</dd>
      </div>
      <div>
        <dt>tokens</dt>
        <dd>{figure(told.total.tokens)}</dd>
      </div>
      <div>
        <dt>of it uncertain</dt>
        <dd>{dollars(told.total.uncertain)}</dd>
        <dd class="faint">{percent(told.total.uncertain, told.total.credits)}</dd>
      </div>
      {told.total.own_key > 0 && (
        <div>
          <dt>with own keys</dt>
          <dd>{dollars(told.total.own_key)}</dd>
        </div>
      )}
      <div>
        <dt>{saved ? "not spent, refused" : "calls refused"}</dt>
        <dd>{saved ? dollars(saved) : figure(all)}</dd>
        <dd class="faint one-line">{refusals.map(([rule, number]) => `${rule} ×${number}`).join(", ") || "none"}</dd>
      </div>
      {told.pruned && (
        <div>
          <dt>in pruned runs</dt>
          <dd>{dollars(told.pruned.credits)}</dd>
        </div>
      )}
    </dl>
  );
}

function Groups({ group, loaded }: { group: Group; loaded: Loaded<Spending> }) {
  return (
    <section>
      <div class="section-head">
        <h2>By {group}</h2>
        <nav class="tabs" aria-label="Grouped by">
          {GROUPS.map((one) => (
            <button key={one} type="button" aria-pressed={one === group} class={one === group ? "on" : undefined} onClick={() => setQuery({ by: one })}>
              {one}
            </button>
          ))}
        </nav>
        <span class="grow" />
        {loaded.data && (
          <button class="button small" onClick={() => save(loaded.data as Spending)}>
            Download CSV
          </button>
        )}
        <CopyCli text={cli("money", "spend", "--by", group)} />
      </div>
      <Shown of={loaded}>{(told) => <Lines group={group} lines={told.lines} total={told.total} />}</Shown>
    </section>
  );
}

function save(told: Spending): void {
  const heads = [told.by, "dollars", "tokens", "calls", "uncertain dollars", "own key dollars"];
  const row = (line: SpendLine) => [line.name, line.credits / 1e6, line.tokens, line.calls, line.uncertain / 1e6, line.own_key / 1e6];
  download(`remit-spend-by-${told.by}.csv`, csv([heads, ...told.lines.map(row), row(told.total)]));
}

function Lines({ group, lines, total }: { group: Group; lines: SpendLine[]; total: SpendLine }) {
  const most = Math.max(1, ...lines.map((line) => line.credits));
  return (
    <Scroll label={`Spending by ${group}`}>
      <table class="table">
        <thead>
          <tr>
            <th>{HEADS[group]}</th>
            <th class="share-cell">
              <span class="unseen">Share</span>
            </th>
            <th class="num">Money</th>
            <th class="num">Tokens</th>
            <th class="num">Calls</th>
            <th class="num">Uncertain</th>
          </tr>
        </thead>
        <tbody>
          {lines.slice(0, 100).map((line) => (
            <tr key={line.name}>
              <td class="spend-name">
                {group === "run" ? <a href={`/runs/${line.name}`}>{line.name}</a> : <span class="one-line">{line.name || NAMELESS[group]}</span>}
              </td>
              <td class="share-cell">
                <span class="share" style={{ width: `${(100 * line.credits) / most}%` }} />
              </td>
              <td class="num cash-text">{dollars(line.credits)}</td>
              <td class="num">{figure(line.tokens)}</td>
              <td class="num">{figure(line.calls)}</td>
              <td class="num">{line.uncertain ? dollars(line.uncertain) : "–"}</td>
            </tr>
          ))}
          <tr class="total">
            <td>total</td>
            <td class="share-cell" />
            <td class="num cash-text">{dollars(total.credits)}</td>
            <td class="num">{figure(total.tokens)}</td>
            <td class="num">{figure(total.calls)}</td>
            <td class="num">{total.uncertain ? dollars(total.uncertain) : "–"}</td>
          </tr>
        </tbody>
      </table>
    </Scroll>
  );
}

function Costliest({ loaded }: { loaded: Loaded<Spending> }) {
  const known = useLoad<{ runs: RunRow[] }>("/v1/runs?limit=1000");
  const task = (id: string) => firstLine(known.data?.runs.find((run) => run.id === id)?.task ?? "");
  return (
    <section>
      <div class="section-head">
        <h2>Costliest runs</h2>
      </div>
      <Shown of={loaded}>
        {(told) => (
          <ol class="card ranks">
            {told.lines.slice(0, 8).map((line) => (
              <li key={line.name}>
                <a class="one-line" href={`/runs/${line.name}`}>
                  {task(line.name) || <span class="mono">{line.name}</span>}
                </a>
                <span class="faint">{percent(line.credits, told.total.credits)}</span>
                <b class="cash-text">{dollars(line.credits)}</b>
              </li>
            ))}
          </ol>
        )}
      </Shown>
    </section>
  );
}

/** Models that used tokens and cost nothing have no price: their money is missing from every sum. */
function Models({ loaded }: { loaded: Loaded<Spending> }) {
  return (
    <section>
      <div class="section-head">
        <h2>Models without a price</h2>
      </div>
      <Shown of={loaded}>
        {(told) => {
          const found = told.lines.filter((line) => line.name && line.tokens > 0 && line.credits === 0);
          return found.length ? (
            <ul class="card ranks">
              {found.map((line) => (
                <li key={line.name}>
                  <span class="mono one-line">{line.name}</span>
                  <span class="faint">{many(line.calls, "call")}</span>
                  <b>{figure(line.tokens)} tokens</b>
                </li>
              ))}
            </ul>
          ) : (
            <p class="quiet">None: every model that was called has a price.</p>
          );
        }}
      </Shown>
    </section>
  );
}

const unit = (amount: number, of: string) => (of === "credits" ? dollars(amount) : figure(amount));

function Budgets() {
  const account = useLoad<Record<string, Budget | null>>("/v1/account", changes);
  const limits = useLoad<{ limits: LimitUse[] }>("/v1/limits", changes);
  const accounts = Object.values(account.data ?? {}).filter((one) => one !== null);
  return (
    <section>
      <div class="section-head">
        <h2>Budgets</h2>
        <CopyCli text={cli("money", "limits")} />
      </div>
      <ul class="budgets">
        {accounts.map((one) => (
          <li key={one.unit} class="card">
            <b>Account, {one.unit === "credits" ? "money" : "tokens"}</b>
            <span>
              {unit(one.spent, one.unit)} of {unit(one.granted, one.unit)} spent, {unit(one.reserved + one.lent, one.unit)} set aside
            </span>
            <BurnLine spent={one.spent} held={one.reserved + one.lent} of={one.granted} />
            {one.overrun > 0 && <Frozen overrun={unit(one.overrun, one.unit)} />}
          </li>
        ))}
        {(limits.data?.limits ?? []).map((one) => (
          <li key={`${one.per} ${one.scope} ${one.name} ${one.unit}`} class="card">
            <b class="one-line">
              {one.scope === "workspace" ? "Workspace" : `${one.scope} ${one.name}`}, {one.unit === "credits" ? "money" : one.unit} per {one.per}
            </b>
            <span>
              {unit(one.used, one.unit)} of {unit(one.most, one.unit)} used
              {one.held > 0 && `, ${unit(one.held, one.unit)} held`}
              {one.room_at !== null && `; room again ${ahead(one.room_at)}`}
            </span>
            <BurnLine spent={one.used} held={one.held} of={one.most} />
          </li>
        ))}
      </ul>
      {account.data && limits.data && !accounts.length && !limits.data.limits.length && (
        <p class="quiet">
          Nothing limits spending here, it is only counted. A grant starts an account; <code>Policy(limits=[Limit("day", credits="$20")])</code> caps a day.
        </p>
      )}
    </section>
  );
}

function Frozen({ overrun }: { overrun: string }) {
  return (
    <div class="acts">
      <span class="bad-text">{overrun} more was billed than it had</span>
      <Act scope="admin" class="button small" onClick={() => void call("POST", "/v1/account/unfreeze", {}, freshKey()).then(() => say("The account is unfrozen"))}>
        Unfreeze
      </Act>
    </div>
  );
}

function Grant() {
  async function grant(form: FormData) {
    const amount = textOf(form, "amount");
    await call("POST", "/v1/account/grant", { amount, why: textOf(form, "why") }, freshKey());
    say(`${amount} was added to the account`);
  }
  return (
    <AskAct scope="admin" title="Add money to the account" verb="Grant money" does="Grant" send={grant} command={cli("money", "grant", "10USD")}>
      <p class="quiet">After the first grant, payments that the account cannot cover are refused.</p>
      <TextField label="Amount" name="amount" placeholder="$10" required autofocus />
      <Why />
    </AskAct>
  );
}

function Reconcile({ one }: { one: UncertainCall }) {
  async function reconcile(form: FormData) {
    const cost = textOf(form, "cost");
    await call("POST", route("uncertain", one.id, "reconcile"), { cost, why: textOf(form, "why") }, freshKey());
    say(`Entered: ${cost}`);
  }
  return (
    <AskAct scope="admin" small title="What did this call really cost?" verb="Reconcile" send={reconcile} command={cli("money", "reconcile", one.id, "0.01USD")}>
      <p class="quiet">
        {dollars(one.credits)} was charged for {one.why || one.id}. The difference is refunded. This can be done once.
      </p>
      <TextField label="Real cost" name="cost" placeholder="$0.01" required autofocus />
      <Why />
    </AskAct>
  );
}

function Uncertain() {
  const loaded = useLoad<{ uncertain: UncertainCall[] }>("/v1/uncertain", changes);
  return (
    <section>
      <div class="section-head">
        <h2>
          Calls of uncertain cost <small>{loaded.data?.uncertain.length ?? ""}</small>
        </h2>
        <span class="faint">no cost was reported, so the whole hold was charged</span>
      </div>
      <Shown of={loaded} rows={1}>
        {({ uncertain }) =>
          uncertain.length ? (
            <Table label="Calls of uncertain cost" heads={["Call", "Agent", "Model", "Run", ["Charged", "num"]]} acts>
              {uncertain.map((one) => (
                <tr key={one.id}>
                  <td class="spend-name">
                    <span class="one-line">{one.why || one.id}</span>
                    <span class="sub mono">{one.id}</span>
                  </td>
                  <td class="one-line">{one.agent}</td>
                  <td class="one-line">{one.model || "–"}</td>
                  <td>
                    <a class="mono" href={`/runs/${one.run}`}>
                      {one.run}
                    </a>
                  </td>
                  <td class="num cash-text">{dollars(one.credits)}</td>
                  <td>
                    <div class="acts">
                      <Reconcile one={one} />
                    </div>
                  </td>
                </tr>
              ))}
            </Table>
          ) : (
            <p class="quiet">None: the cost of every call is known.</p>
          )
        }
      </Shown>
    </section>
  );
}
