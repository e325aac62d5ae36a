// Programs by rules: only the rows and columns in sight are in the document, so 500 by 60 scroll as 10 by 6 do.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Failed, useAnswer, Waiting } from "../pane";
import { parameter, setParameters } from "../selection";
import { counted, visible } from "../words";
import { CellFindings } from "./findings";
import { LevelMark } from "./marks";
import type { Matrix, Row } from "./wire";

const ROW = 38; // pixels, as in site.css
const HEAD = 62;
const CELL = 128;
const NAME = { wide: 320, narrow: 150 };
const AROUND = 3; // rows and columns beyond those in sight

export type Place = [row: number, column: number];

export const nameOf = (row: Row): string => visible(row.custom_id ?? `(item ${row.n})`);

export function MatrixPane({ path, onShown }: { path: string; onShown: () => void }) {
  const { value, problem, again } = useAnswer<Matrix>("/v1/audits", path);
  useLayoutEffect(() => { if (value) onShown(); }, [value]);
  if (problem) return <Failed problem={problem} again={again} />;
  if (!value) return <Waiting>Asking for the whole matrix.</Waiting>;
  return <Grid matrix={value} />;
}

/** Rules with findings in most programs first; those that only lacked a fact come last. */
function ordered(matrix: Matrix): string[] {
  const programs = (rule: string): number => matrix.items.reduce((sum, row) => sum + (row.findings[rule] ? 1 : 0), 0);
  const counts = new Map(matrix.rules.map((rule) => [rule, programs(rule)]));
  return [...matrix.rules].sort((a, b) => counts.get(b)! - counts.get(a)! || (a < b ? -1 : 1));
}

function asked(matrix: Matrix, rules: string[]): Place | null {
  const [n, rule] = (parameter("cell") ?? "").split(".", 2);
  const place: Place = [matrix.items.findIndex((row) => String(row.n) === n), rules.indexOf(rule ?? "")];
  return place[0] < 0 || place[1] < 0 ? null : place;
}

function Grid({ matrix }: { matrix: Matrix }) {
  const rules = useMemo(() => ordered(matrix), [matrix]);
  const [at, setAt] = useState<Place | null>(() => asked(matrix, rules));
  const [open, setOpen] = useState<Place | null>(at);
  const room = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, left: 0, width: 1200, height: 640 });
  const isNarrow = view.width < 700;
  const name = isNarrow ? NAME.narrow : NAME.wide;
  const look = () => {
    const seen = room.current!;
    setView({ top: seen.scrollTop, left: seen.scrollLeft, width: seen.clientWidth, height: seen.clientHeight });
  };
  useLayoutEffect(() => {
    const seen = room.current!;
    const sizes = new ResizeObserver(look);
    sizes.observe(seen);
    seen.addEventListener("scroll", look, { passive: true });
    look();
    return () => { sizes.disconnect(); seen.removeEventListener("scroll", look); };
  }, []);
  useLayoutEffect(() => { // at once: the cell that the keys stand on is in the document when a reader asks for it
    if (!at) return;
    reveal(room.current!, at, name);
    look();
  }, [at, name]);
  useEffect(() => { if (open) document.getElementById("cell")?.remove(); }, [open]); // the server's answer to the same
  const { items } = matrix;
  const rows = inSight(view.top, view.height - HEAD, ROW, items.length);
  const columns = inSight(view.left, view.width - name, CELL, rules.length);
  const show = (place: Place) => {
    setAt(place);
    setOpen(place);
    setParameters({ cell: `${items[place[0]]!.n}.${rules[place[1]]!}` });
  };
  const pressed = (event: KeyboardEvent) => {
    const [row, column] = at ?? [0, 0];
    const page = Math.max(1, Math.floor((view.height - HEAD) / ROW) - 1);
    const ways: Record<string, Place> = {
      ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1],
      PageUp: [row - page, column], PageDown: [row + page, column],
      Home: [event.ctrlKey ? 0 : row, 0], End: [event.ctrlKey ? items.length - 1 : row, rules.length - 1],
    };
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); if (at) show(at); return; }
    const to = ways[event.key];
    if (!to) return;
    event.preventDefault();
    const first: Place = [Math.ceil(view.top / ROW), Math.ceil(view.left / CELL)]; // whole and in sight
    const [line, rule] = at ? to : first;
    setAt([clamp(line, items.length), clamp(rule, rules.length)]);
  };
  if (!items.length || !rules.length) return <Waiting>{items.length ? "No rule says anything of these programs." : "No program matches the filter."}</Waiting>;
  const chosen = open && items[open[0]] && rules[open[1]] ? open : null;
  return (
    <>
      <div class="bar"><span>{counted(items.length, "program")} by {counted(rules.length, "rule")}</span><span>The arrows move, Enter opens a cell.</span></div>
      <div class="matrix-room scroll" ref={room}>
        <table class={isNarrow ? "matrix narrow" : "matrix"} width={name + CELL * rules.length} role="grid" tabIndex={0} aria-label="Programs by rules"
          aria-rowcount={items.length + 1} aria-colcount={rules.length + 1} aria-activedescendant={at ? idOf(at) : undefined} onKeyDown={pressed}>
          <colgroup><col class="name" /><col class="cell" span={rules.length} /></colgroup>
          <thead><tr aria-rowindex={1}>
            <th scope="col" aria-colindex={1}>Program</th>
            <Gap span={columns.first} />
            {rules.slice(columns.first, columns.last).map((rule, k) => <th key={rule} scope="col" aria-colindex={columns.first + k + 2}><a href={`/rules/${encodeURIComponent(rule)}`} tabIndex={-1}>{visible(rule)}</a></th>)}
            <Gap span={rules.length - columns.last} />
          </tr></thead>
          <tbody>
            <Space rows={rows.first} span={rules.length + 1} />
            {items.slice(rows.first, rows.last).map((row, k) => {
              const line = rows.first + k;
              return (
                <tr key={row.n} aria-rowindex={line + 2}>
                  <th scope="row" aria-colindex={1} title={nameOf(row)}>{row.verdict ?? "to come"} {row.run ? <a href={`/runs/${row.run}`} tabIndex={-1}>{nameOf(row)}</a> : nameOf(row)}</th>
                  <Gap span={columns.first} />
                  {rules.slice(columns.first, columns.last).map((rule, c) => {
                    const place: Place = [line, columns.first + c];
                    const isAt = at !== null && at[0] === place[0] && at[1] === place[1];
                    return <Cell key={rule} row={row} rule={rule} place={place} isAt={isAt} open={show} />;
                  })}
                  <Gap span={rules.length - columns.last} />
                </tr>
              );
            })}
            <Space rows={items.length - rows.last} span={rules.length + 1} />
          </tbody>
        </table>
      </div>
      {chosen && <CellFindings key={`${items[chosen[0]]!.n}.${rules[chosen[1]]!}`} row={items[chosen[0]]!} rule={rules[chosen[1]]!} />}
    </>
  );
}

const idOf = ([row, column]: Place): string => `cell-${row}-${column}`;
const clamp = (value: number, count: number): number => Math.max(0, Math.min(count - 1, value));

function inSight(from: number, length: number, size: number, count: number): { first: number; last: number } {
  return { first: Math.max(0, Math.min(count - 1, Math.floor(from / size)) - AROUND), last: Math.min(count, Math.ceil((from + Math.max(0, length)) / size) + AROUND) };
}

/** Scrolls the room, never the page, until the whole cell is in sight beside the fixed row and column. */
function reveal(room: HTMLElement, [row, column]: Place, name: number): void {
  const [top, left] = [row * ROW, column * CELL];
  const [height, width] = [room.clientHeight - HEAD, room.clientWidth - name];
  if (top < room.scrollTop) room.scrollTop = top;
  else if (top + ROW > room.scrollTop + height) room.scrollTop = top + ROW - height;
  if (left < room.scrollLeft) room.scrollLeft = left;
  else if (left + CELL > room.scrollLeft + width) room.scrollLeft = left + CELL - width;
}

function Gap({ span }: { span: number }) {
  return span > 0 ? <td class="gap" colSpan={span} aria-hidden="true" /> : null;
}

function Space({ rows, span }: { rows: number; span: number }) {
  return rows > 0 ? <tr aria-hidden="true"><td class="gap" colSpan={span} height={rows * ROW} /></tr> : null;
}

function Cell({ row, rule, place, isAt, open }: { row: Row; rule: string; place: Place; isAt: boolean; open: (place: Place) => void }) {
  const [state, count, level] = [row.states[rule], row.findings[rule], row.levels[rule]];
  const isNotRun = state === "not-run" || (state === undefined && !row.judged);
  const classes = [state === "fail" && "fails", isNotRun && "not-run", isAt && "here"].filter(Boolean).join(" ");
  return (
    <td id={idOf(place)} class={classes} aria-colindex={place[1] + 2} aria-selected={isAt} data-open={count ? "" : undefined} onClick={() => open(place)}>
      {count ? <>{level && <LevelMark level={level} />} {level ?? "finding"} {count}{state === "fail" && <span class="hidden"> fails the audit</span>}</> : isNotRun ? (row.verdict === null ? "to come" : "not run") : ""}
    </td>
  );
}
