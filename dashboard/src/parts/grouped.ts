/** Return the members of a list by a key, in their order. */
export function grouped<T>(all: readonly T[], key: (one: T) => string): Map<string, T[]> {
  const found = new Map<string, T[]>();
  for (const one of all) {
    const group = found.get(key(one));
    if (group) group.push(one);
    else found.set(key(one), [one]);
  }
  return found;
}
