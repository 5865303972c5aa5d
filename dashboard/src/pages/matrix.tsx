// Who asks whom: rows ask, columns are asked. What the cards allow against what happened.
import { Scroll } from "../parts/shown";
import type { AgentCard, AskEdge } from "../shapes";
import { allows } from "./permissions";

const MOST = 40; // agents; a larger matrix helps nobody

type Mark = "used" | "unused" | "refused" | "strange" | "none";

/** Return how a cell looks: what was asked and allowed, never used, refused, or asked by a card that is different now. */
export function markOf(isAllowed: boolean, edge: AskEdge | undefined): Mark {
  if (edge?.asked) return isAllowed ? "used" : "strange";
  if (edge?.refused) return "refused";
  return isAllowed ? "unused" : "none";
}

const SAYS: Record<Mark, string> = {
  used: "asked",
  unused: "may ask, never did",
  refused: "refused",
  strange: "asked, not allowed by the card of now",
  none: "may not ask",
};

export function Matrix({ cards, edges }: { cards: AgentCard[]; edges: AskEdge[] }) {
  const between = edges.filter((edge) => edge.asker);
  const askers = [...new Set([...cards.filter((card) => card.asks.length).map((card) => card.name), ...between.map((edge) => edge.asker)])].sort();
  const asked = [...new Set([...cards.map((card) => card.name), ...between.map((edge) => edge.agent)])].sort();
  if (!askers.length) return null;
  return (
    <section>
      <div class="section-head">
        <h2>Who asks whom</h2>
        <ul class="matrix-legend" aria-hidden="true">
          {(["used", "unused", "refused", "strange"] as const).map((mark) => (
            <li key={mark}>
              <i class={`cell ${mark}`} />
              {SAYS[mark]}
            </li>
          ))}
        </ul>
      </div>
      <Scroll label="Who asks whom" class="matrix-box">
        <table class="matrix">
          <thead>
            <tr>
              <th scope="col">
                <span class="unseen">Asker</span>
              </th>
              {asked.slice(0, MOST).map((name) => (
                <th key={name} scope="col">
                  <span class="one-line" title={name}>
                    {name}
                  </span>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {askers.slice(0, MOST).map((asker) => (
              <tr key={asker}>
                <th scope="row" class="one-line" title={asker}>
                  {asker}
                </th>
                {asked.slice(0, MOST).map((agent) => (
                  <Cell
                    key={agent}
                    asker={asker}
                    agent={agent}
                    isAllowed={allows(cards.find((card) => card.name === asker), agent)}
                    edge={between.find((edge) => edge.asker === asker && edge.agent === agent)}
                  />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </section>
  );
}

function Cell({ asker, agent, isAllowed, edge }: { asker: string; agent: string; isAllowed: boolean; edge: AskEdge | undefined }) {
  const mark = asker === agent && !edge ? "none" : markOf(isAllowed, edge);
  const counts = edge ? `: ${edge.asked} asked, ${edge.completed} completed, ${edge.failed + edge.dead} failed, ${edge.refused} refused` : "";
  return (
    <td title={`${asker} → ${agent}: ${SAYS[mark]}${counts}`}>
      <span class={`cell ${mark}`}>
        {edge?.asked ? edge.asked : edge?.refused ? edge.refused : ""}
        {edge?.asked && edge.refused ? <sup>{edge.refused}</sup> : null}
        <span class="unseen">{mark === "none" ? "" : SAYS[mark]}</span>
      </span>
    </td>
  );
}
