export function RunPage({ values }: { values: Record<string, string> }) {
  return <h1>Run {values.id}</h1>;
}
