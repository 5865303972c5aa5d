// What a browser without a session sees.
import { useState } from "preact/hooks";
import { reason } from "./session";
import { signIn } from "./signing";

export function SignIn() {
  const [busy, setBusy] = useState(false);

  async function submit(event: Event) {
    event.preventDefault();
    const field = (event.currentTarget as HTMLFormElement).elements.namedItem("key") as HTMLInputElement;
    setBusy(true);
    try {
      await signIn(field.value.trim());
    } catch (error) {
      reason.value = (error as Error).message;
      field.value = "";
      field.focus();
    }
    setBusy(false);
  }

  return (
    <main class="signin">
      <form class="card" onSubmit={(event) => void submit(event)}>
        <h1>Sign in to remit</h1>
        <p class="quiet">
          Open the address that <code>remit serve</code> printed, or enter its token here. On other machines, use a key
          made with <code>remit access make</code>.
        </p>
        {reason.value && (
          <p class="wrong" role="alert">
            {reason.value}
          </p>
        )}
        <label>
          Token or key
          <input class="field mono" name="key" type="password" autocomplete="off" spellcheck={false} required autofocus />
        </label>
        <button class="button main" type="submit" disabled={busy}>
          Sign in
        </button>
      </form>
    </main>
  );
}
