// Times and durations, in microseconds.

export const SECOND = 1e6;

const two = (number: number): string => String(Math.floor(number)).padStart(2, "0");

// "57 ms", "0.4 s", "12 s", "1:05", "2.5 h", "3 d"
export function took(micros: number): string {
  const seconds = Math.max(0, micros) / SECOND;
  if (seconds > 0 && seconds < 0.0995) return `${Math.max(1, Math.round(seconds * 1_000))} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 59.5) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(Math.round(seconds) / 60)}:${two(Math.round(seconds) % 60)}`;
  if (seconds < 86_400) return `${(seconds / 3600).toFixed(1)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

// The moment of a run, counted from its beginning: "2.90 s"
export const sinceStart = (at: number, start: number): string => {
  const seconds = Math.max(0, at - start) / SECOND;
  return seconds < 100 ? `${seconds.toFixed(2)} s` : took(at - start);
};

// "in 7 days", as a person needs it to decide now or later
export function left(micros: number): string {
  const seconds = micros / SECOND;
  if (seconds <= 0) return "time is up";
  if (seconds < 90) return `${Math.ceil(seconds)} s left`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min left`;
  if (seconds < 129_600) return `${Math.round(seconds / 3600)} h left`;
  return `${Math.round(seconds / 86_400)} d left`;
}

export function clockTime(at: number): string {
  const then = new Date(at / 1000);
  return [then.getHours(), then.getMinutes(), then.getSeconds()].map(two).join(":");
}

export function day(at: number, now: number): string {
  const then = new Date(at / 1000);
  if (then.toDateString() === new Date(now / 1000).toDateString()) return clockTime(at);
  return `${then.toLocaleDateString("en-GB", { day: "numeric", month: "short" })}, ${clockTime(at).slice(0, 5)}`;
}
