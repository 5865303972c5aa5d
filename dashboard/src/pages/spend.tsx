export function SpendPage() {
  return <h1>Spend</h1>;
}
