// Who saw an entry: each turn has a receipt of what it was given.
import { route } from "../api";
import { useLoad } from "../parts/load";
import { moment, shortVersion } from "../parts/said";
import { many } from "../parts/money";

interface Reader {
  version: number;
  agent: string;
  task: string;
  run: string;
  at: number;
}

export function Readers({ namespace, name }: { namespace: string; name: string }) {
  const { data, problem } = useLoad<{ readers: Reader[] }>(`${route("context", namespace, name)}/readers`, (event) => event.kind === "task.completed");
  if (problem?.status === 404) return null; // the entry is gone
  return (
    <div class="entry-part">
      <h3>Who saw it</h3>
      {problem && <p class="quiet">{problem.message}</p>}
      {data && !data.readers.length && <p class="quiet">Nobody has seen it yet.</p>}
      {data && data.readers.length > 0 && (
        <>
          <p class="faint">{many(data.readers.length, "turn")} had it in the receipt</p>
          <ul class="plain readers">
            {data.readers.map((one, at) => (
              <li key={at}>
                <b class="one-line">{one.agent}</b>
                <span title={String(one.version)}>v{shortVersion(one.version)}</span>
                <a class="mono" href={`/runs/${one.run}`}>
                  {one.run}
                </a>
                <span class="faint">{moment(one.at)}</span>
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}
