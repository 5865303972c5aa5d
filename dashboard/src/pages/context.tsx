export function ContextPage() {
  return <h1>Context</h1>;
}
