// "Copy as CLI": the same act on the command line.

const SAFE = /^[A-Za-z0-9_\-./:=@%+,]+$/;

const quoted = (word: string): string => (SAFE.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`);

/** Return a command of remit against this server, as a shell takes it. */
export const cli = (...words: string[]): string =>
  ["remit", ...words, "--server", location.origin].map(quoted).join(" ");

/** Put a text on the clipboard. Return whether the browser allowed it. */
export async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

interface CopyOf {
  command: string;
  say: (text: string) => void;
  children?: string;
}

export function CopyAsCli({ command, say, children = "Copy as CLI" }: CopyOf) {
  const copy = async () => say((await copied(command)) ? `Copied: ${command}` : `Copy this: ${command}`);
  return (
    <button type="button" class="linkish" title={command} onClick={() => void copy()}>
      {children}
    </button>
  );
}
