// A button that asks before it acts, in a dialog, and the fields of such dialogs.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { FormDialog } from "./dialog";
import { Act, CopyCli } from "./shown";

interface AskOf {
  scope: string;
  title: string;
  verb: string; // on the button, and in the dialog unless `does` says more
  does?: string;
  bad?: boolean;
  wide?: boolean;
  small?: boolean;
  label?: string;
  off?: string;
  command?: string; // the same act on the command line
  send: (form: FormData) => Promise<unknown>;
  children?: ComponentChildren;
}

export function AskAct({ scope, title, verb, does = verb, bad = false, wide = false, small = false, label, off = "", command, send, children }: AskOf) {
  const [asks, setAsks] = useState(false);
  const look = `button${small ? " small" : ""}${bad ? " no" : ""}`;
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
export function Field({ label, name, mono = false, ...rest }: FieldOf) {
  return (
    <label>
      {label}
      <input class={mono ? "field mono" : "field"} name={name} {...rest} />
    </label>
  );
}

/** The reason for an act, for the journal. */
export const Why = () => <Field label="Why?" name="why" maxLength={500} />;

/** Return what a field has, without the space around it. */
export const textOf = (form: FormData, name: string): string => String(form.get(name) ?? "").trim();
