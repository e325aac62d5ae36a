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

/** A stranger's text on one line, at most so long: what a page would obey, and not show, as escapes. */
export function cut(text: string, most: number): string {
  const shown = visible(text);
  return shown.length > most ? `${shown.slice(0, most - 1)}\u2026` : shown;
}

/** How long something goes on: `75 s`, `3 min 20 s`, `2 h 5 min`. */
export function lasting(seconds: number): string {
  const past = Math.max(0, Math.floor(seconds));
  if (past < 120) return `${past} s`;
  return past < 3600 ? `${Math.floor(past / 60)} min ${past % 60} s` : `${Math.floor(past / 3600)} h ${Math.floor((past % 3600) / 60)} min`;
}

/** A stranger's text: characters that a page would obey, and not show, as escapes, the same as the server writes. */
export const visible = (text: string): string =>
  text.replaceAll("\r\n", "\n").replace(/(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Co}\u2028\u2029]/gu, (letter) => {
    const code = letter.codePointAt(0)!.toString(16);
    if (code.length < 3) return `\\x${code.padStart(2, "0")}`;
    return code.length < 5 ? `\\u${code.padStart(4, "0")}` : `\\U${code.padStart(8, "0")}`;
  });
