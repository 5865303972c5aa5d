export function Missing() {
  return (
    <section class="missing">
      <h1>There is no such page</h1>
      <p>
        <a href="/">All runs</a>
      </p>
    </section>
  );
}
