// Money by day as bars; the tables beside it have the same figures.
import { many } from "../parts/money";
import { dollars } from "../parts/said";
import type { SpendLine } from "../shapes";

/** Return the days from the first line to the last, those without spending too; at most `most` of them, the latest. */
export function everyDay(lines: SpendLine[], most: number): SpendLine[] {
  const known = new Map(lines.filter((line) => /^\d{4}-\d\d-\d\d$/.test(line.name)).map((line) => [line.name, line]));
  const names = [...known.keys()].sort();
  const [first, last] = [names[0], names.at(-1)];
  if (!first || !last) return [];
  const days: SpendLine[] = [];
  for (let at = Date.parse(last); at >= Date.parse(first) && days.length < most; at -= 86_400_000) {
    const name = new Date(at).toISOString().slice(0, 10);
    days.unshift(known.get(name) ?? { name, credits: 0, tokens: 0, calls: 0, uncertain: 0, own_key: 0 });
  }
  return days;
}

export function DayChart({ lines }: { lines: SpendLine[] }) {
  const days = everyDay(lines, 60);
  const most = Math.max(1, ...days.map((day) => day.credits));
  const every = Math.ceil(days.length / 15); // labels that fit
  const high = (amount: number) => ({ height: `${(100 * amount) / most}%` });
  return (
    <figure class="chart" role="img" aria-label={`Spending by day, at most ${dollars(most)} a day`}>
      <div class="chart-scale" aria-hidden="true">
        <span>{dollars(most)}</span>
        <span>{dollars(Math.round(most / 2))}</span>
        <span>$0</span>
      </div>
      <div class="chart-days">
        {days.map((day, at) => (
          <div key={day.name} class="chart-day" title={`${day.name}: ${dollars(day.credits)}, ${many(day.calls, "call")}`}>
            <div class="chart-bar">
              <i style={high(day.credits)}>{day.uncertain > 0 && <i style={{ height: `${(100 * day.uncertain) / day.credits}%` }} />}</i>
            </div>
            <span>{at % every === 0 ? day.name.slice(5) : ""}</span>
          </div>
        ))}
      </div>
    </figure>
  );
}
