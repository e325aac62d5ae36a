// What stayed of the graph after each backward call: bytes over calls, by the line that made it, and its growth in words.
import { useMemo, useRef, useState } from "preact/hooks";
import { Failed, useAnswer, useRoom, Waiting } from "./pane";
import { select } from "./selection";
import { counted, cut, sized } from "./words";

interface Line { path: string | null; line: number | null; roots: number; held_nodes: number; held_bytes: number }
interface Root { tensor: number; name: string | null; line: number | null; held_nodes: number; held_bytes: number; holders: string[]; holder_search: string }
interface After { call: number | null; step: number; live_nodes: number | null; held_bytes: number | null; lines: Line[]; other: Line | null; roots: Root[] }

const [HEIGHT, LEFT] = [150, 92];

export function HeldPane({ base }: { base: string }) {
  const { value, problem, again } = useAnswer<{ items: After[] }>(base, "retention");
  if (problem) return <Failed problem={problem} again={again} />;
  if (!value) return <Waiting>Asking for what was held after each backward call.</Waiting>;
  if (!value.items.some((after) => bytesOf(after) > 0 || nodesOf(after) > 0)) return <Waiting>Nothing of a graph was still held when a backward call had ended.</Waiting>;
  return <Chart items={value.items} />;
}

const bytesOf = (after: After): number => after.held_bytes ?? after.lines.reduce((sum, line) => sum + line.held_bytes, after.other?.held_bytes ?? 0);
const nodesOf = (after: After): number => after.live_nodes ?? after.lines.reduce((sum, line) => sum + line.held_nodes, after.other?.held_nodes ?? 0);

/** Marks from 0 to the peak: halves of bytes, which are sized; whole nodes the same number apart. */
export function ticksUpTo(peak: number, ofBytes: boolean): number[] {
  if (ofBytes) return [0, peak / 2, peak];
  const apart = [...Array(10).keys()].flatMap((power) => [1, 2, 5].map((digit) => digit * 10 ** power)).find((step) => peak / step <= 3) ?? peak;
  return [...Array(Math.floor(peak / apart) + 1).keys()].map((at) => at * apart);
}

/** Where each call adds the same: what a step adds. */
export function slope(items: After[]): string | null {
  const calls = items.filter((after) => after.call !== null && after.live_nodes !== null);
  if (calls.length < 4) return null;
  const [first, last] = [calls[1]!, calls[calls.length - 1]!];
  const steps = last.call! - first.call!;
  const [bytes, nodes] = [(bytesOf(last) - bytesOf(first)) / steps, (nodesOf(last) - nodesOf(first)) / steps];
  const rises = calls.slice(2).filter((after, at) => nodesOf(after) > nodesOf(calls[at + 1]!)).length;
  if (nodes <= 0 || rises < 0.9 * (calls.length - 2)) return null;
  const size = bytes >= 1 ? `, ${sized(Math.round(bytes))}` : "";
  return `It grows: +${Number(nodes.toPrecision(3))} nodes${size} with each backward call${size ? "" : "; what they saved was freed, they themselves stay"}.`;
}

function Chart({ items }: { items: After[] }) {
  const ofBytes = items.some((after) => bytesOf(after) > 0);
  const amount = ofBytes ? bytesOf : nodesOf;
  const words = (value: number): string => (ofBytes ? sized(Math.round(value)) : counted(Math.round(value), "node"));
  const peak = items.reduce((most, after) => Math.max(most, amount(after)), 1);
  const [at, setAt] = useState<number>(() => items.reduce((best, after, place) => (amount(after) >= amount(items[best]!) ? place : best), 0));
  const outer = useRef<HTMLDivElement>(null);
  const width = Math.max(240, useRoom(outer)); // a pixel is a pixel: its words are never scaled down
  const x = (place: number) => LEFT + (items.length < 2 ? (width - LEFT) / 2 : (place * (width - LEFT - 10)) / (items.length - 1));
  const y = (bytes: number) => 10 + (HEIGHT - 20) * (1 - bytes / peak);
  const path = useMemo(() => items.map((after, place) => `${place ? "L" : "M"}${x(place).toFixed(1)} ${y(amount(after)).toFixed(1)}`).join(""), [items, width]);
  const now = items[Math.min(at, items.length - 1)]!;
  const grows = slope(items);
  const pick = (place: number) => {
    const next = Math.max(0, Math.min(items.length - 1, place));
    setAt(next);
    const call = items[next]!.call;
    if (call !== null) select({ call: String(call) }, false);
  };
  const clicked = (event: MouseEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    pick(Math.round(((event.clientX - box.left - LEFT) / (width - LEFT - 10)) * (items.length - 1)));
  };
  return (
    <div class="inner held-pane" ref={outer}>
      {grows && <p class="notice warn">{grows}</p>}
      <svg class="held-drawn" width={width} height={HEIGHT + 22} role="img" aria-label={`${ofBytes ? "Bytes held" : "Nodes alive"} after each of ${items.length} backward calls, ${words(peak)} at most`} onClick={clicked}>
        {ticksUpTo(peak, ofBytes).map((tick) => <g key={tick}><path class="grid" d={`M${LEFT} ${y(tick)}H${width - 10}`} /><text class="tick end" x={LEFT - 8} y={y(tick) + 4}>{words(tick)}</text></g>)}
        <path class="area" d={`${path}L${x(items.length - 1)} ${y(0)}L${x(0)} ${y(0)}Z`} />
        <path class="curve" d={path} />
        {items.length === 1 && <circle class="point" cx={x(0)} cy={y(amount(items[0]!))} r="4" />}
        <path class="cursor" d={`M${x(at)} 6V${HEIGHT - 8}`} />
        <text class={items.length === 1 ? "tick mid" : "tick"} x={items.length === 1 ? x(0) : LEFT} y={HEIGHT + 12}>{items[0]!.call === null ? "end" : `call ${items[0]!.call + 1}`}</text>
        {items.length > 1 && <text class="tick end" x={width - 10} y={HEIGHT + 12}>{items[items.length - 1]!.call === null ? "end of the run" : `call ${items[items.length - 1]!.call! + 1}`}</text>}
      </svg>
      {items.length > 1 && <label class="bar">after <input type="range" aria-label="Held after which backward call" min={0} max={items.length - 1} value={at} onInput={(event) => pick(Number(event.currentTarget.value))} /> {now.call === null ? "the end of the run" : `backward call ${now.call + 1}`}</label>}
      <p role="status"><strong>{sized(bytesOf(now))}</strong> of saved tensors held, {counted(nodesOf(now), "node")} alive {now.call === null ? "at the end" : `after backward call ${now.call + 1}`}.</p>
      <Lines after={now} />
      <Holders after={now} />
    </div>
  );
}

function Lines({ after }: { after: After }) {
  if (!after.lines.some((line) => line.held_bytes > 0 || line.held_nodes > 0)) return bytesOf(after) ? <p class="calm">No live tensor was found that holds them.</p> : null;
  return (
    <ul class="held-lines">
      {after.lines.filter((line) => line.held_bytes > 0 || line.held_nodes > 0).slice(0, 12).map((line) => (
        <li key={`${line.path} ${line.line}`}>{line.line === null ? "not known where" : <a href={`#L${line.line}`}>line {line.line}</a>} <span class="mono">{sized(line.held_bytes)}</span>, {counted(line.held_nodes, "node")} by {counted(line.roots, "tensor")}</li>
      ))}
      {after.other && <li>other lines <span class="mono">{sized(after.other.held_bytes)}</span></li>}
    </ul>
  );
}

function Holders({ after }: { after: After }) {
  const held = after.roots.filter((root) => root.holders.length).slice(0, 6);
  if (!held.length) return null;
  return (
    <ul class="held-lines" aria-label="Who holds it">
      {held.map((root) => <li key={root.tensor}><a href={`#t${root.tensor}`}>{cut(root.name ?? `tensor ${root.tensor}`, 60)}</a> is held by <span class="mono">{cut(root.holders.slice(0, 3).join(", "), 160)}</span></li>)}
    </ul>
  );
}
