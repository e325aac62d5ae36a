// What is drawn: loss, gradient norm and the chosen tensors of one run or two, as lines over steps.
import { cut } from "../words";

export type Value = number | "NaN" | "Infinity" | "-Infinity" | null;
export interface Steps { steps: number[]; loss: Value[]; grad_norm: Value[]; count: number; exact: boolean }
export interface Heat { exact: boolean; steps: number[]; rows: { tensor: number; name: string | null; fqn: string | null; values: Value[] }[] }

/** `colour` is the same for a tensor of both runs; lines of the other run are dashed. Of `arePeaks` each value is the
 * greatest from its step to the next one. */
export interface Line { label: string; colour: number; isOther: boolean; arePeaks: boolean; steps: number[]; values: Value[] }
export interface Chart { title: string; lines: Line[] }

const COLOURS = 6; // tensors of one run in a chart, as `line_chart.py` has it

export const runWords = (base: string, isOther: boolean): string => (isOther ? `run \u2026${base.slice(-6)}` : "this run");

export function lineOf(base: string, isOther: boolean, found: Steps, values: Value[]): Line {
  return { label: runWords(base, isOther), colour: Number(isOther), isOther, arePeaks: !found.exact, steps: found.steps, values };
}

/** The values over steps of the tensors of each name: a name that is bound again at each step is one line. Of several
 * values of a step the last one counts, unless one before it is not finite. */
function byName({ rows, steps }: Heat): Map<string, Map<number, Value>> {
  const named = new Map<string, Map<number, Value>>();
  for (const row of rows) {
    const label = cut(row.fqn ?? row.name ?? `tensor ${row.tensor}`, 200);
    const values = named.get(label) ?? new Map<number, Value>(steps.map((step) => [step, null]));
    named.set(label, values);
    row.values.forEach((value, at) => {
      if (value !== null && typeof values.get(steps[at]!) !== "string") values.set(steps[at]!, value);
    });
  }
  return named;
}

export function linesOfTensors(found: { base: string; heat: Heat }[]): Line[] {
  const first = found[0];
  if (!first) return [];
  const names = [...byName(first.heat).keys()].slice(0, COLOURS);
  return found.flatMap(({ base, heat }, run) => {
    const named = byName(heat);
    return names.flatMap((name, colour) => {
      const values = named.get(name);
      const label = found.length === 1 ? name : `${name}, ${runWords(base, run > 0)}`;
      return values ? [{ label, colour, isOther: run > 0, arePeaks: false, steps: [...values.keys()], values: [...values.values()] }] : [];
    });
  });
}

export const hasValues = (line: Line): boolean => line.values.some((value) => value !== null);

/** The finite values; a gap where there is none. */
export const finite = (line: Line): (number | null)[] => line.values.map((value) => (typeof value === "number" ? value : null));

/** The steps at which it is NaN or infinite. */
export const broken = (line: Line): number[] => line.steps.filter((_, at) => typeof line.values[at] === "string");

/** Where a value of the line lies, in words. */
export function placeWords(line: Line, step: number): string {
  const next = line.steps[line.steps.indexOf(step) + 1];
  if (!line.arePeaks) return `at step ${step.toLocaleString("en")}`;
  return next === undefined ? `from step ${step.toLocaleString("en")} on` : `in steps ${step.toLocaleString("en")} to ${(next - 1).toLocaleString("en")}`;
}

export function valueAt(line: Line, step: number): Value | undefined {
  const at = line.steps.indexOf(step);
  return at < 0 ? undefined : line.values[at];
}
