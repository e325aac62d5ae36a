// Lines that were edited since a run, and a program with a fix put in.
import type { Edit } from "./wire";

/** The lines of `ran`, from 1, that `now` has no longer as they were: all between the first and the last difference. */
export function changedLines(ran: string, now: string): Set<number> {
  const [before, after] = [ran.split("\n"), now.split("\n")];
  const most = Math.min(before.length, after.length);
  let [start, end] = [0, 0];
  while (start < most && before[start] === after[start]) start += 1;
  while (end < most - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1;
  return new Set(Array.from({ length: before.length - end - start }, (_, at) => start + at + 1));
}

export function applyEdits(text: string, edits: Edit[]): string {
  const starts = [0];
  for (const line of text.split("\n")) starts.push(starts[starts.length - 1]! + line.length + 1);
  // Columns count characters; a string of this language counts an emoji as two.
  const offset = (line: number, column: number): number => {
    const start = starts[line - 1] ?? text.length;
    return start + [...text.slice(start, starts[line] ?? text.length)].slice(0, column - 1).join("").length;
  };
  const sorted = edits.map(({ region, text: put }) => ({ from: offset(region.start_line, region.start_col), to: offset(region.end_line, region.end_col), put }))
    .sort((a, b) => b.from - a.from);
  return sorted.reduce((all, { from, to, put }) => all.slice(0, from) + put + all.slice(to), text);
}
