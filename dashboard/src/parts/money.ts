// Amounts of money, in microdollars.

export function money(micro: number): string {
  const dollars = micro / 1e6;
  if (dollars === 0) return "$0";
  const sign = dollars < 0 ? "-" : "";
  const size = Math.abs(dollars);
  if (size < 0.0001) return `${sign}<$0.0001`;
  return `${sign}$${size < 0.01 ? size.toFixed(4) : size.toFixed(2).replace(/\B(?=(\d{3})+\.)/g, ",")}`;
}

const NUMBER = new Intl.NumberFormat("en-US"); // made once: making one takes longer than all it formats
export const count = (number: number): string => NUMBER.format(number);

// "1 task", "2 tasks"
export const many = (number: number, word: string, words = `${word}s`): string =>
  `${count(number)} ${number === 1 ? word : words}`;

// "a", "a and b", "a, b and c"
export const listed = (names: readonly string[]): string =>
  names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
