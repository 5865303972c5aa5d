// What needs a person, before everything else: questions, stalled runs, runs that are nearly out of money, breakers.
import { ago, dollars, firstLine } from "../parts/said";
import { left } from "../parts/time";
import { useNow } from "../parts/ticking";
import { Glyph, type Tone } from "../parts/pill";
import { breakers } from "./breakers";
import { open, sending, subtitle, title } from "./questions";
import { type Listed, OVER } from "./runlist";

const TIGHT = 0.8; // of its money is spent or held
const MOST = 8; // cards, half of them at least for questions

interface Need {
  id: string;
  tone: Tone;
  href: string;
  title: string;
  sub: string;
  when: string;
}

export function NeedsYou({ rows }: { rows: Listed[] }) {
  const time = useNow();
  const questions: Need[] = (open.value ?? [])
    .filter((one) => !sending.value.has(one.id))
    .map((one) => ({
      id: one.id,
      tone: "you",
      href: `/approvals/${one.id}`,
      title: title(one).slice(0, 200),
      sub: firstLine(subtitle(one)),
      when: left(one.until - time),
    }));
  const running = rows.filter((row) => !OVER.has(row.state));
  const stalled: Need[] = running
    .filter((row) => row.stalled)
    .map((row) => ({
      id: `s${row.id}`,
      tone: "bad",
      href: `/runs/${row.id}`,
      title: `${row.agent} has stalled`,
      sub: firstLine(row.task),
      when: row.seen_at ? `last sign ${ago(row.seen_at, time)}` : "",
    }));
  const tight: Need[] = running
    .filter((row) => row.granted && row.credits + (row.held ?? 0) > TIGHT * row.granted)
    .map((row) => ({
      id: `m${row.id}`,
      tone: "cash",
      href: `/runs/${row.id}`,
      title: `${dollars(row.credits + (row.held ?? 0))} of ${dollars(row.granted)} used`,
      sub: firstLine(row.task),
      when: "",
    }));
  const tripped: Need[] = (breakers.value ?? [])
    .filter((one) => one.state !== "closed")
    .map((one) => ({
      id: `b${one.agent}`,
      tone: "bad",
      href: `/agents/${encodeURIComponent(one.agent)}`,
      title: `${one.agent} is out of service`,
      sub: one.why,
      when: one.state,
    }));
  const others = [...stalled, ...tripped, ...tight];
  const all = [...questions.slice(0, Math.max(MOST / 2, MOST - others.length)), ...others].slice(0, MOST);
  const whole = questions.length + others.length;
  if (!all.length) return null;
  return (
    <section class="needs" aria-label="Needs you">
      <h2>
        Needs you <small>{whole}</small>
      </h2>
      <ul>
        {all.map((one) => (
          <li key={one.id}>
            <a class={`need t-${one.tone}`} href={one.href}>
              <Glyph sign={one.tone} />
              <span class="title">{one.title}</span>
              <span class="when">{one.when}</span>
              <span class="sub">{one.sub}</span>
            </a>
          </li>
        ))}
      </ul>
      {whole > all.length && (
        <p>
          <a class="link" href="/approvals">
            and {whole - all.length} more
          </a>
        </p>
      )}
    </section>
  );
}
