// Money by day as bars. Plain SVG; the table beside it has the same figures.
import { dollars } from "../parts/said";
import type { SpendLine } from "../shapes";

const HEIGHT = 150;
const WIDTH = 1_000;
const TOP = 18;

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
  const step = Math.min(80, WIDTH / Math.max(days.length, 1));
  const bar = Math.max(3, step * 0.66);
  const high = (amount: number) => ((HEIGHT - TOP) * amount) / most;
  return (
    <figure class="chart">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT + 20}`} role="img" aria-label={`Spending by day, at most ${dollars(most)} a day`}>
        {[0, 0.5, 1].map((share) => (
          <g key={share}>
            <line x1="0" x2={WIDTH} y1={HEIGHT - high(most * share)} y2={HEIGHT - high(most * share)} />
            <text x={WIDTH} y={HEIGHT - high(most * share) - 4} text-anchor="end">
              {dollars(Math.round(most * share))}
            </text>
          </g>
        ))}
        {days.map((day, at) => (
          <g key={day.name} class="bar">
            <title>{`${day.name}: ${dollars(day.credits)}, ${day.calls} calls`}</title>
            <rect x={at * step + (step - bar) / 2} y={HEIGHT - high(day.credits)} width={bar} height={high(day.credits)} rx="2" />
            {day.uncertain > 0 && (
              <rect class="uncertain" x={at * step + (step - bar) / 2} y={HEIGHT - high(day.credits)} width={bar} height={high(day.uncertain)} rx="2" />
            )}
            {at % Math.ceil(days.length / 12) === 0 && (
              <text x={at * step + step / 2} y={HEIGHT + 15} text-anchor="middle">
                {day.name.slice(5)}
              </text>
            )}
          </g>
        ))}
      </svg>
    </figure>
  );
}
