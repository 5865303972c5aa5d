// Which workers are alive, by their heartbeats.

export const SILENT = 30_000_000; // microseconds without a heartbeat, after which a worker counts as lost

interface Beating {
  readonly id: string;
  readonly seen_at?: number | null;
}

export const isSilent = (seen: number | null | undefined, now: number): boolean => Boolean(seen) && now - (seen as number) > SILENT;

/** Follows the heartbeats of workers. The clocks of a server and of a browser may differ, so an old heartbeat counts only
 * beside a new one, or when no other has come for as long here. */
export class Beats {
  private readonly seen = new Map<string, readonly [beat: number, since: number]>();

  /** Return the workers of a list that are alive. */
  alive(workers: readonly Beating[], now: number): Set<string> {
    const comparable = workers.some((one) => one.seen_at && Math.abs(now - one.seen_at) <= SILENT);
    const living = workers.filter((one) => !this.stands(one, now) && !(comparable && isSilent(one.seen_at, now)));
    return new Set(living.map((one) => one.id));
  }

  private stands({ id, seen_at }: Beating, now: number): boolean {
    if (!seen_at) return false;
    const before = this.seen.get(id);
    if (before?.[0] === seen_at) return now - before[1] > SILENT;
    this.seen.set(id, [seen_at, now]);
    return false;
  }
}
