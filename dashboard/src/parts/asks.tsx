// A button that asks before it acts, in a dialog, and the fields of such dialogs.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Dialog, FormDialog } from "./dialog";
import { Act, Command, CopyCli } from "./shown";

interface AskOf {
  scope: string;
  title: string;
  verb: string; // on the button, and in the dialog unless `does` says more
  does?: string;
  bad?: boolean;
  red?: boolean; // whether the button is red; like `bad` unless told
  wide?: boolean;
  small?: boolean;
  label?: string;
  off?: string;
  command?: string; // the same act on the command line
  send: (form: FormData) => Promise<unknown>;
  children?: ComponentChildren;
}

export function AskAct({ scope, title, verb, does = verb, bad = false, red = bad, wide = false, small = false, label, off = "", command, send, children }: AskOf) {
  const [asks, setAsks] = useState(false);
  const look = `button${small ? " small" : ""}${red ? " no" : ""}`;
  return (
    <>
      <Act scope={scope} class={look} off={off} {...(label === undefined ? {} : { label })} onClick={() => setAsks(true)}>
        {verb}
      </Act>
      {asks && (
        <FormDialog title={title} verb={does} bad={bad} wide={wide} onClose={() => setAsks(false)} onSend={send} aside={command && <CopyCli text={command} />}>
          {children}
        </FormDialog>
      )}
    </>
  );
}

interface FieldOf {
  name: string;
  label: string;
  mono?: boolean;
  value?: string;
  placeholder?: string;
  required?: boolean;
  autofocus?: boolean;
  maxLength?: number;
  inputMode?: "decimal";
}

/** A line of text with its label. */
export function TextField({ label, name, mono = false, ...rest }: FieldOf) {
  return (
    <label>
      {label}
      <input class={mono ? "field mono" : "field"} name={name} {...rest} />
    </label>
  );
}

/** The reason for an act, for the journal. */
export const Why = ({ label = "Why?", ...rest }: { label?: string; required?: boolean; autofocus?: boolean }) => <TextField label={label} name="why" maxLength={500} {...rest} />;

/** Return what a field has, without the space around it. */
export const textOf = (form: FormData, name: string): string => String(form.get(name) ?? "").trim();

/** A secret, which is shown once. */
export function Once({ title, secret, onClose, children }: { title: string; secret: string; onClose: () => void; children: ComponentChildren }) {
  return (
    <Dialog title={title} onClose={onClose}>
      <div class="once">
        <b>Copy it now: it is not shown again.</b>
        <Command text={secret} />
      </div>
      <p class="quiet">{children}</p>
      <div class="acts">
        <span class="grow" />
        <button class="button main" onClick={onClose}>
          I have it
        </button>
      </div>
    </Dialog>
  );
}
