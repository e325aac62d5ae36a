// Numbers as people read them, the same as the server's pages have.

export function sized(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let value = bytes / 1024;
  let at = 0;
  while (value >= 1024 && at < units.length - 1) { value /= 1024; at += 1; }
  return `${value.toFixed(1)} ${units[at]}`;
}

export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

export function number(value: number | string | null): string {
  if (value === null) return "not captured";
  if (typeof value === "string") return value;
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 1e-3 && size < 1e5 ? String(Number(value.toPrecision(4))) : value.toExponential(2);
}

export const cut = (text: string, most: number): string => (text.length > most ? `${text.slice(0, most - 1)}\u2026` : text);
