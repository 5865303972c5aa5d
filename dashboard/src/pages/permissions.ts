// Who may ask whom by the cards, against who asked whom by the journal.
import type { AgentCard, AskEdge } from "../shapes";

/** Return the names of a list of a card; "*" stands for all. */
export function names(given: string[] | string): string[] {
  return typeof given === "string" ? (given ? [given] : []) : given;
}

/** Whether the cards let one agent ask another. */
export function allows(card: AgentCard | undefined, agent: string): boolean {
  const asks = names(card?.asks ?? []);
  return card !== undefined && card.name !== agent && (asks.includes("*") || asks.includes(agent));
}

export interface UnusedAsks {
  asker: string;
  every: boolean; // it may ask everyone
  asked: string[];
  never: string[];
}

/** Return the permissions to ask that were never used; an agent that may ask everyone is there with those it asked. */
export function unused(cards: AgentCard[], edges: AskEdge[]): UnusedAsks[] {
  return cards.flatMap((card) => {
    const asked = edges.filter((edge) => edge.asker === card.name && edge.asked > 0).map((edge) => edge.agent);
    const every = names(card.asks).includes("*");
    const never = cards.map((one) => one.name).filter((name) => allows(card, name) && !asked.includes(name));
    return never.length ? [{ asker: card.name, every, asked: asked.toSorted(), never }] : [];
  });
}
