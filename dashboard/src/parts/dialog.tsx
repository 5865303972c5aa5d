// A dialog that asks before something is done. The browser keeps the focus inside it, and Escape closes it.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { sentenceOf } from "../api";

interface DialogOf {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  wide?: boolean;
}

export function Dialog({ title, onClose, children, wide = false }: DialogOf) {
  const box = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const from = document.activeElement;
    const shown = box.current;
    if (shown && !shown.open) shown.showModal();
    return () => {
      shown?.close();
      if (from instanceof HTMLElement && from.isConnected) from.focus();
    };
  }, []);
  return (
    <dialog
      ref={box}
      class={wide ? "dialog wide" : "dialog"}
      aria-labelledby={id}
      onCancel={(event) => (event.preventDefault(), onClose())}
      onClick={(event) => event.target === box.current && onClose()}
    >
      <div class="inner">
        <h2 id={id}>{title}</h2>
        {children}
      </div>
    </dialog>
  );
}

interface FormOf extends Omit<DialogOf, "children"> {
  verb: string;
  bad?: boolean;
  onSend: (form: FormData) => Promise<unknown>;
  children?: ComponentChildren;
  aside?: ComponentChildren;
}

/** A dialog with a form. It stays open, with the server's sentence, if the act fails. */
export function FormDialog({ title, verb, bad = false, onSend, onClose, children, aside, wide = false }: FormOf) {
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  async function submit(event: Event) {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    try {
      await onSend(new FormData(event.currentTarget as HTMLFormElement));
      onClose();
    } catch (error) {
      setProblem(sentenceOf(error));
      setBusy(false);
    }
  }
  return (
    <Dialog title={title} onClose={onClose} wide={wide}>
      <form class="form" onSubmit={(event) => void submit(event)}>
        {children}
        {problem && (
          <p class="wrong" role="alert">
            {problem}
          </p>
        )}
        <div class="acts">
          {aside}
          <span class="grow" />
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class={bad ? "button no" : "button main"} aria-disabled={busy || undefined}>
            {verb}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
