// The agents: what they did, what it cost, who asks whom, and what they may do but never did.
import { useState } from "preact/hooks";
import { call, freshKey, route } from "../api";
import { AskAct, textOf, Why } from "../parts/asks";
import { cli } from "../parts/copycli";
import { Dialog } from "../parts/dialog";
import { useKeys } from "../parts/keys";
import { useLoad } from "../parts/load";
import { many } from "../parts/money";
import { Glyph, Pill } from "../parts/pill";
import { Empty, Scroll, Shown } from "../parts/shown";
import { ahead, dollars, figure, now, percent, span } from "../parts/said";
import { SECOND } from "../parts/time";
import { say } from "../parts/toast";
import { toneOf } from "../parts/tone";
import { Field, Said, Words } from "../parts/value";
import { go } from "../router";
import type { AgentCard, AgentFigures, AskEdge, Breaker, Event, Figures } from "../shapes";
import { Matrix } from "./matrix";
import { breakers } from "./breakers";
import { names, unused } from "./permissions";
import "../styles/agents.css";

const ENDS = new Set(["task.completed", "task.failed", "task.cancelled", "task.died", "hop.refused", "cards.published", "task.handed"]);
const FOREVER = 365 * 86_400 * SECOND; // a breaker that a person tripped stays open until it is reset
const changes = (event: Event) => ENDS.has(event.kind);

/** One agent: its card if a worker has published one, and what it did. */
interface Known {
  name: string;
  card: AgentCard | undefined;
  figures: AgentFigures | undefined;
  breaker: Breaker | undefined;
  calls: number;
  refused: number;
}

export function AgentsPage({ values }: { values: Record<string, string> }) {
  const cards = useLoad<{ agents: AgentCard[] }>("/v1/agents", (event) => event.kind === "cards.published" || event.kind === "card.withdrawn");
  const figures = useLoad<Figures>("/v1/analytics", changes);
  const edges = useLoad<{ edges: AskEdge[] }>("/v1/edges", changes);
  return (
    <div class="page agents">
      <header class="page-head">
        <h1>Agents</h1>
      </header>
      <Shown of={cards}>
        {({ agents }) => (
          <Shown of={figures}>
            {(told) => (
              <Shown of={edges}>{(asks) => <All cards={agents} figures={told} edges={asks.edges} chosen={values.name ?? ""} />}</Shown>
            )}
          </Shown>
        )}
      </Shown>
    </div>
  );
}

function known(cards: AgentCard[], figures: Figures, edges: AskEdge[]): Known[] {
  const all = new Set([...cards.map((card) => card.name), ...Object.keys(figures.agents)]);
  return [...all].sort().map((name) => ({
    name,
    card: cards.find((card) => card.name === name),
    figures: figures.agents[name],
    breaker: breakers.value?.find((one) => one.agent === name),
    calls: edges.filter((edge) => edge.agent === name).reduce((sum, edge) => sum + edge.asked, 0),
    refused: edges.filter((edge) => edge.asker === name).reduce((sum, edge) => sum + edge.refused, 0),
  }));
}

function All({ cards, figures, edges, chosen }: { cards: AgentCard[]; figures: Figures; edges: AskEdge[]; chosen: string }) {
  const all = known(cards, figures, edges);
  const [at, setAt] = useState(-1);
  const move = (by: number) => setAt(Math.max(0, Math.min(all.length - 1, at + by)));
  useKeys("Agents", [
    { key: "j", does: "next agent", run: () => move(1) },
    { key: "k", does: "agent before", run: () => move(-1) },
    { key: "Enter", does: "show its card", run: () => all[at] && go(`/agents/${encodeURIComponent(all[at].name)}`) },
  ]);
  if (!all.length)
    return (
      <Empty title="No agent yet" command="remit serve team.py:rt">
        Agents show up here when a worker with a team starts.
      </Empty>
    );
  const shown = all.find((one) => one.name === chosen);
  return (
    <>
      <Scroll label="Agents">
        <table class="table">
          <thead>
            <tr>
              <th>Agent</th>
              <th class="num">Calls</th>
              <th class="num">Success</th>
              <th class="num">p50</th>
              <th class="num">p95</th>
              <th class="num">Cost a call</th>
              <th class="num">Tokens</th>
              <th class="num">Refused</th>
              <th>Breaker</th>
              <th>
                      <span class="unseen">What can be done</span>
                    </th>
            </tr>
          </thead>
          <tbody>
            {all.map((one, index) => (
              <Row key={one.name} one={one} isAt={index === at} />
            ))}
          </tbody>
        </table>
      </Scroll>
      <Matrix cards={cards} edges={edges} />
      <Unused cards={cards} edges={edges} />
      {chosen && (shown ? <Card one={shown} edges={edges} /> : <NoCard name={chosen} />)}
    </>
  );
}

function Row({ one, isAt }: { one: Known; isAt: boolean }) {
  const told = one.figures;
  const ended = told ? told.completed + told.failed + told.cancelled : 0;
  return (
    <tr class={isAt ? "at" : undefined}>
      <td class="agent-name">
        <a href={`/agents/${encodeURIComponent(one.name)}`}>{one.name}</a>
        <span class="sub one-line">{one.card?.workers ? one.card.role || one.card.can.join(", ") : "no worker has it now"}</span>
      </td>
      <td class="num">{figure(Math.max(one.calls, told?.turns ?? 0)) || "–"}</td>
      <td class="num">
        {told && ended ? (
          <span class={told.failed ? "bad-text" : undefined} title={`${told.completed} completed, ${told.failed} failed, ${told.cancelled} cancelled`}>
            {percent(told.completed, ended)}
          </span>
        ) : (
          "–"
        )}
      </td>
      <td class="num">{told?.turns ? span(told.time_p50) : "–"}</td>
      <td class="num">{told?.turns ? span(told.time_p95) : "–"}</td>
      <td class="num cash-text">{told?.turns && told.credits ? dollars(Math.round(told.credits / told.turns)) : "–"}</td>
      <td class="num">{told?.tokens ? figure(told.tokens) : "–"}</td>
      <td class={one.refused ? "num bad-text" : "num"}>{one.refused || "–"}</td>
      <td>
        <BreakerState breaker={one.breaker} />
      </td>
      <td>
        <div class="acts">
          <BreakerAct name={one.name} breaker={one.breaker} />
        </div>
      </td>
    </tr>
  );
}

function BreakerState({ breaker }: { breaker: Breaker | undefined }) {
  if (!breaker || breaker.state === "closed")
    return (
      <span class="faint" title={breaker?.why}>
        closed{breaker?.failures ? `, ${many(breaker.failures, "failure")}` : ""}
      </span>
    );
  return (
    <span title={breaker.why}>
      <Pill tone={toneOf(breaker.state)}>{breaker.state === "open" ? "out of service" : breaker.state}</Pill>
      <span class="sub one-line breaker-why">{breaker.until - now() < FOREVER ? `tried again ${ahead(breaker.until)}` : breaker.why}</span>
    </span>
  );
}

function BreakerAct({ name, breaker }: { name: string; breaker: Breaker | undefined }) {
  const isOut = breaker !== undefined && breaker.state !== "closed";
  const verb = isOut ? "Reset" : "Trip";
  async function act(form: FormData) {
    await call("POST", route("breakers", name, verb.toLowerCase()), { why: textOf(form, "why") }, freshKey());
    say(isOut ? `${name} may be called again` : `${name} is out of service`);
  }
  return (
    <AskAct
      scope="admin"
      small
      verb={verb}
      label={`${verb} the breaker of ${name}`}
      title={isOut ? `Let ${name} be called again?` : `Take ${name} out of service?`}
      bad={!isOut}
      red={false}
      send={act}
      command={isOut ? cli("breaker", "reset", name) : cli("breaker", "trip", name, "--why", "…")}
    >
      <p class="quiet">
        {isOut
          ? "Its breaker is closed at once. Its failures so far are forgotten."
          : "Every call to it is refused, with your reason, until somebody resets it. Tasks that it works on go on."}
      </p>
      <Why required={!isOut} autofocus />
    </AskAct>
  );
}

function Unused({ cards, edges }: { cards: AgentCard[]; edges: AskEdge[] }) {
  const found = unused(cards, edges);
  return (
    <section>
      <div class="section-head">
        <h2>
          Permissions never used <small>{found.length}</small>
        </h2>
        <span class="faint">in what the journal still has; what nobody needs can be removed from the card</span>
      </div>
      {found.length ? (
        <ul class="card unused">
          {found.map((one) => (
            <li key={one.asker}>
              <b>{one.asker}</b>{" "}
              {one.every ? (
                <span>
                  may ask everyone, and asked {one.asked.length ? <Words words={one.asked} /> : "nobody"}
                </span>
              ) : (
                <span>
                  never asked <Words words={one.never} />
                </span>
              )}
              <code class="faint one-line">asks={JSON.stringify(one.asked)}</code>
            </li>
          ))}
        </ul>
      ) : (
        <p class="quiet">Every agent has asked everyone that it may ask.</p>
      )}
    </section>
  );
}

function NoCard({ name }: { name: string }) {
  return (
    <Dialog title={name.slice(0, 100)} onClose={() => go("/agents")}>
      <p class="quiet">There is no agent of this name, and the journal has none.</p>
      <div class="acts">
        <button class="button" onClick={() => go("/agents")}>
          Close
        </button>
      </div>
    </Dialog>
  );
}

function Card({ one, edges }: { one: Known; edges: AskEdge[] }) {
  const { card } = one;
  const asked = edges.filter((edge) => edge.agent === one.name && edge.asked);
  return (
    <Dialog title={one.name} onClose={() => go("/agents")} wide>
      {card?.role && <p class="quiet">{card.role}</p>}
      {one.breaker && one.breaker.state !== "closed" && (
        <p class="wrong">
          <Glyph sign="bad" /> Out of service: {one.breaker.why}
        </p>
      )}
      {card ? (
        <dl class="fields">
          <Field name="can">
            <Words words={card.can} />
          </Field>
          <Field name="asks">
            <Words words={names(card.asks)} none="nobody" />
          </Field>
          <Field name="asked by">
            <Words words={asked.map((edge) => `${edge.asker || "people"} ×${edge.asked}`)} none="nobody yet" />
          </Field>
          <Field name="reads">
            <Words words={card.reads} none="its own memory only" />
          </Field>
          <Field name="writes">
            <Words words={card.writes} none="its own memory only" />
          </Field>
          <Field name="tools">
            <Words words={names(card.tools)} />
          </Field>
          {names(card.deny).length > 0 && (
            <Field name="never uses">
              <Words words={names(card.deny)} />
            </Field>
          )}
          <Field name="at once">{card.concurrency ?? "no limit of its own"}</Field>
          <Field name="people">
            <Words
              words={[
                ...(card.needs_approval ? ["works only after an approval"] : []),
                ...(card.review ? ["results are reviewed"] : []),
                ...(card.ask_person ? ["may ask a person"] : []),
              ]}
              none="nothing needs a person"
            />
          </Field>
          <Field name="output">{card.trusted_output ? "trusted, even after untrusted input" : "as trusted as its input"}</Field>
          {card.instructions && (
            <Field name="instructions">
              <Said text={card.instructions} />
            </Field>
          )}
        </dl>
      ) : (
        <p class="quiet">No worker has this agent now. The journal has what it did.</p>
      )}
      <div class="acts">
        <a class="link" href={`/?agent=${encodeURIComponent(one.name)}`}>
          Its runs
        </a>
        <span class="grow" />
        <BreakerAct name={one.name} breaker={one.breaker} />
        <button class="button" onClick={() => go("/agents")}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
