// One number of many tensors over the steps: a canvas with a cursor, and the same as words in a table.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Failed, useAnswer, useRoom, Waiting } from "./pane";
import { onSelection, parameter, select, selection, setParameters } from "./selection";
import { counted, cut, number } from "./words";

type Value = number | "NaN" | "Infinity" | "-Infinity" | null;
interface Row { tensor: number; name: string | null; fqn: string | null; line: number | null; values: Value[] }
interface Heat { stat: string; moments: number[]; steps: number[]; rows: Row[]; exact: boolean }

const ROW = 18;
const AXIS = 20;
const LETTER = 7.4; // pixels at most, in the font of the names
const MOST = 400; // rows that the API answers with
const RAMP = [[0, 32, 76], [44, 66, 108], [91, 95, 110], [124, 123, 120], [163, 153, 114], [207, 188, 91], [255, 233, 69]] as const;

export function HeatPane({ base }: { base: string }) {
  const { value, problem, again } = useAnswer<Heat>(base, "series?points=500");
  if (problem) return <Failed problem={problem} again={again} />;
  if (!value) return <Waiting>Asking for the gradients' norms.</Waiting>;
  if (!value.rows.length || !value.moments.length) return <Waiting>No gradient of a parameter was read, so there is nothing to compare over steps.</Waiting>;
  return <Map heat={value} />;
}

interface Facts { row: Row; finite: number[]; nan: number | null; nans: number; zeros: number; none: number }

function factsOf(row: Row): Facts {
  const finite: number[] = [];
  let [nan, nans, zeros, none] = [null as number | null, 0, 0, 0];
  row.values.forEach((value, at) => {
    if (value === null) none += 1;
    else if (typeof value === "string") { nans += 1; nan ??= at; }
    else if (value === 0) zeros += 1;
    else finite.push(value);
  });
  return { row, finite, nan, nans, zeros, none };
}

const named = (row: Row): string => row.fqn ?? row.name ?? `tensor ${row.tensor}`;

const ORDERS = {
  model: { words: "order of the model", by: () => 0 },
  nan: { words: "first NaN or Inf", by: (facts: Facts) => facts.nan ?? 1e9 },
  largest: { words: "largest", by: (facts: Facts) => -Math.max(-1, ...facts.finite) },
  smallest: { words: "smallest", by: (facts: Facts) => Math.min(1e300, ...facts.finite) },
} as const;

type Order = keyof typeof ORDERS;

function Map({ heat }: { heat: Heat }) {
  const asked = parameter("sort");
  const [order, setOrder] = useState<Order>(asked && asked in ORDERS ? (asked as Order) : "model");
  const [tabled, setTabled] = useState(false);
  const [cell, setCell] = useState<[number, number] | null>(null);
  const rows = useMemo(() => heat.rows.map(factsOf).map((facts, at) => ({ facts, at })).sort((a, b) => ORDERS[order].by(a.facts) - ORDERS[order].by(b.facts) || a.at - b.at).map(({ facts }) => facts), [heat, order]);
  const all = rows.flatMap((facts) => facts.finite.map(Math.log10));
  const [low, high] = all.length ? [all.reduce((a, b) => Math.min(a, b)), all.reduce((a, b) => Math.max(a, b))] : [0, 1];
  const pick = (row: number, column: number) => {
    setCell([row, column]);
    const { tensor, line } = rows[row]!.row;
    select({ t: String(tensor), ...(line === null ? {} : { line: String(line) }), ...(selection().call === undefined ? {} : { call: selection().call! }) }, false);
  };
  const at = cell && rows[cell[0]] ? cell : null;
  const broken = rows.filter((facts) => facts.nans);
  const first = broken.length ? Math.min(...broken.map((facts) => facts.nan!)) : null;
  return (
    <>
      <div class="bar">
        <label>Rows by <select value={order} onChange={(event) => { const name = event.currentTarget.value as Order; setOrder(name); setParameters({ sort: name === "model" ? null : name }); setCell(null); }}>
          {Object.entries(ORDERS).map(([name, { words }]) => <option key={name} value={name}>{words}</option>)}
        </select></label>
        <span>{rows.length === MOST ? `the first ${MOST} tensors` : counted(rows.length, "tensor")}, {heat.exact ? "" : "at "}{counted(heat.moments.length, "step")}{heat.exact ? "" : ", spread evenly"}</span>
        {first !== null && <span class="bad-words">first NaN or Inf: step {heat.steps[first]}, in {broken.filter((facts) => facts.nan === first).length} of {rows.length}</span>}
      </div>
      <Cells rows={rows} heat={heat} low={low} high={high} cell={at} pick={pick} />
      <p class="said-below" role="status">{at ? wordsOf(rows, heat, at) : "Pointing at a cell, or the arrows once the picture has the focus, tell one value."}</p>
      <Scale low={low} high={all.length ? high : null} />
      <details class="twin" onToggle={(event) => setTabled(event.currentTarget.open)}><summary>The same as a table</summary>{tabled && <Twin rows={rows} heat={heat} />}</details>
    </>
  );
}

const told = (value: Value): string => (typeof value === "number" ? `norm ${number(value)}` : value === null ? "not captured" : value);

const wordsOf = (rows: Facts[], heat: Heat, [row, column]: [number, number]): string => `${cut(named(rows[row]!.row), 120)}, step ${heat.steps[column]!.toLocaleString("en")}: ${told(rows[row]!.row.values[column] ?? null)}`;

interface CellsGiven { rows: Facts[]; heat: Heat; low: number; high: number; cell: [number, number] | null; pick: (row: number, column: number) => void }

function Cells({ rows, heat, low, high, cell, pick }: CellsGiven) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const outer = useRef<HTMLDivElement>(null);
  const room = useRoom(outer);
  const [, turn] = useState(0);
  useEffect(() => onSelection(() => turn((before) => before + 1)), []);
  useEffect(() => { // a canvas does not follow the theme by itself
    const theme = matchMedia("(prefers-color-scheme: dark)");
    const drawn = () => turn((before) => before + 1);
    theme.addEventListener("change", drawn);
    return () => theme.removeEventListener("change", drawn);
  }, []);
  const columns = heat.moments.length;
  const longest = rows.reduce((most, facts) => Math.max(most, named(facts.row).length), 4);
  const names = Math.max(60, Math.min(18 + LETTER * Math.min(longest, 60), room * 0.45)); // the end of a longer one is shown
  const width = Math.max(1, Math.min(24, (room - names - 4) / columns));
  const [w, h] = [Math.max(1, Math.floor(names + width * columns + 2)), rows.length * ROW + AXIS];
  const chosen = selection().t;
  useLayoutEffect(() => { if (canvas.current) paint(canvas.current, { rows, low, high, names, width, w, h, cell, chosen, steps: heat.steps }); });
  const pressed = (event: KeyboardEvent) => {
    const way = ({ ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] } as Record<string, [number, number]>)[event.key];
    if (!way) return;
    event.preventDefault();
    const [row, column] = cell ?? [0, -way[1]];
    pick(Math.max(0, Math.min(rows.length - 1, row + way[0])), Math.max(0, Math.min(columns - 1, column + way[1])));
  };
  const cellAt = (event: MouseEvent): [number, number] | null => {
    const [row, column] = [Math.floor(event.offsetY / ROW), Math.floor((event.offsetX - names) / width)];
    return row >= 0 && row < rows.length ? [row, Math.max(0, Math.min(columns - 1, column))] : null;
  };
  const clicked = (event: MouseEvent) => { const at = cellAt(event); if (at) pick(...at); };
  const [pointed, point] = useState<[number, number] | null>(null);
  const moved = (event: MouseEvent) => {
    const at = event.offsetX < names ? null : cellAt(event);
    if (at?.join() !== pointed?.join()) point(at);
  };
  const told = pointed && rows[pointed[0]] && pointed[1] < columns ? pointed : cell;
  return (
    <div class="heat holds" ref={outer}>
      {told && <Tip words={wordsOf(rows, heat, told)} x={names + told[1] * width} y={told[0] * ROW} room={outer} />}
      <canvas ref={canvas} width={w} height={h} tabIndex={0} role="img" aria-label={`Norm of the gradient of ${counted(rows.length, "tensor")} over ${counted(columns, "step")}; arrows tell single values`} onKeyDown={pressed} onClick={clicked} onMouseMove={moved} onMouseLeave={() => point(null)} />
    </div>
  );
}

/** The value of a cell in words, below it or above it: wherever the pane is scrolled to, it is seen beside its cell. */
function Tip({ words, x, y, room }: { words: string; x: number; y: number; room: { current: HTMLDivElement | null } }) {
  const tip = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const [box, pane] = [tip.current, room.current];
    if (!box || !pane) return;
    const inset = parseFloat(getComputedStyle(pane).paddingLeft);
    const most = pane.scrollLeft + pane.clientWidth - box.offsetWidth - 4;
    box.style.left = `${Math.max(pane.scrollLeft + 4, Math.min(x + inset, most))}px`;
    const below = y + ROW + 4;
    box.style.top = `${below + box.offsetHeight > pane.scrollTop + pane.clientHeight ? y - box.offsetHeight - 4 : below}px`;
  });
  return <div class="heat-tip" ref={tip} aria-hidden="true">{words}</div>;
}

interface Painted { rows: Facts[]; low: number; high: number; names: number; width: number; w: number; h: number; cell: [number, number] | null; chosen: string | undefined; steps: number[] }

function paint(canvas: HTMLCanvasElement, { rows, low, high, names, width, w, h, cell, chosen, steps }: Painted): void {
  const sharp = Math.min(2, devicePixelRatio || 1);
  if (canvas.width !== Math.floor(w * sharp)) canvas.width = Math.floor(w * sharp);
  if (canvas.height !== Math.floor(h * sharp)) canvas.height = Math.floor(h * sharp);
  canvas.style.width = `${w}px`;
  canvas.style.height = `${h}px`;
  const context = canvas.getContext("2d");
  if (!context) return;
  const style = getComputedStyle(canvas);
  context.setTransform(sharp, 0, 0, sharp, 0, 0);
  context.clearRect(0, 0, w, h);
  context.font = `12px ${style.fontFamily}`;
  context.textBaseline = "middle";
  rows.forEach((facts, row) => {
    const y = row * ROW;
    if (String(facts.row.tensor) === chosen) { context.fillStyle = style.outlineColor; context.fillRect(0, y, 3, ROW - 1); }
    context.fillStyle = style.color;
    context.fillText(fitted(context, named(facts.row), names - 12), 6, y + ROW / 2);
    facts.row.values.forEach((value, column) => {
      const x = names + column * width;
      if (value === null) return;
      if (typeof value === "string") { context.fillStyle = style.borderTopColor; context.fillRect(x, y, width, ROW - 1); if (width >= 6) cross(context, x, y, width, style.backgroundColor); return; }
      if (value === 0) { context.fillStyle = style.caretColor; context.fillRect(x + width / 2 - 1, y + ROW / 2 - 2, Math.min(2, width), 2); return; }
      context.fillStyle = ramp((Math.log10(value) - low) / (high - low || 1));
      context.fillRect(x, y, width + 0.4, ROW - 1);
    });
  });
  axis(context, style.color, { steps, names, width, w, y: rows.length * ROW + AXIS / 2 + 2 });
  if (cell) { context.strokeStyle = style.outlineColor; context.lineWidth = 2; context.strokeRect(names + cell[1] * width, cell[0] * ROW, Math.max(4, width), ROW - 1); }
}

/** The first step and the last one, where there is room for both. */
function axis(context: CanvasRenderingContext2D, colour: string, { steps, names, width, w, y }: { steps: number[]; names: number; width: number; w: number; y: number }): void {
  const [first, last] = [steps[0] ?? 0, steps[steps.length - 1] ?? 0].map((step) => step.toLocaleString("en"));
  const end = names + width * steps.length;
  context.fillStyle = colour;
  context.fillText("step", 6, y);
  context.fillText(first!, names, y);
  if (first !== last && end - names > context.measureText(first! + last!).width + 12) context.fillText(last!, Math.min(w, end) - context.measureText(last!).width, y);
}

function cross(context: CanvasRenderingContext2D, x: number, y: number, width: number, colour: string): void {
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(x + 2, y + 4); context.lineTo(x + width - 2, y + ROW - 5);
  context.moveTo(x + width - 2, y + 4); context.lineTo(x + 2, y + ROW - 5);
  context.stroke();
}

function fitted(context: CanvasRenderingContext2D, text: string, room: number): string {
  let shown = cut(text, 60);
  while (shown.length > 4 && context.measureText(shown).width > room) shown = `\u2026${shown.slice(2)}`; // the end tells layers apart
  return shown;
}

function ramp(share: number): string {
  const at = Math.max(0, Math.min(0.9999, share)) * (RAMP.length - 1);
  const [a, b] = [RAMP[Math.floor(at)]!, RAMP[Math.floor(at) + 1]!];
  const mix = at - Math.floor(at);
  return `rgb(${a.map((one, i) => Math.round(one + mix * (b[i]! - one))).join(" ")})`;
}

const bound = (log: number): string => number(Number((10 ** log).toPrecision(2)));

/** `high` is null where no norm is finite. */
function Scale({ low, high }: { low: number; high: number | null }) {
  const ramped = high !== null && high > low;
  return (
    <p class="scale">
      {ramped && <><span>{bound(low)}
        <svg class="ramp" viewBox="0 0 70 10" preserveAspectRatio="none" aria-hidden="true">{RAMP.map((one, at) => <rect key={at} x={at * 10} width="10.3" height="10" fill={`rgb(${one.join(" ")})`} />)}</svg>
        {bound(high)}</span><span>norm, on a scale of logarithms</span></>}
      {high !== null && !ramped && <span>each norm is {bound(low)}</span>}
      <span>red with a cross: NaN or Inf</span><span>a dot: exactly zero</span><span>nothing: not captured</span></p>
  );
}

function range(finite: number[]): string {
  if (!finite.length) return "none";
  const [least, most] = [Math.min(...finite), Math.max(...finite)];
  return least === most ? number(least) : `${number(least)} to ${number(most)}`;
}

function Twin({ rows, heat }: { rows: Facts[]; heat: Heat }) {
  const shown = rows.slice(0, 60);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Table of gradients over steps">
      <table class="stacks narrow">
        <thead><tr><th scope="col">Tensor</th><th scope="col" class="number">Norms</th><th scope="col" class="number">Last</th><th scope="col" class="number">Steps at zero</th><th scope="col" class="number">Not captured</th><th scope="col" class="number">First NaN or Inf</th></tr></thead>
        <tbody>{shown.map((facts) => (
          <tr key={facts.row.tensor}>
            <th scope="row" class="mono">{cut(named(facts.row), 80)}</th>
            <td class="number" data-label="norms">{range(facts.finite)}</td>
            <td class="number" data-label="last">{number(facts.row.values[facts.row.values.length - 1] ?? null)}</td>
            <td class="number" data-label="steps at zero">{facts.zeros}</td>
            <td class="number" data-label="not captured">{facts.none}</td>
            <td class="number" data-label="first NaN or Inf">{facts.nan === null ? "none" : `step ${heat.steps[facts.nan]}`}</td>
          </tr>))}
        </tbody>
      </table>
      {rows.length > shown.length && <p class="said-below">The first {shown.length} of {rows.length}, in this order.</p>}
    </div>
  );
}
