// The autograd graph of one backward call: a slider over the calls, module calls that open and close, search, export.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { inReport, isReport } from "../api";
import { Failed, useAnswer, Waiting } from "../pane";
import { onSelection, parameter, select, selection, setParameters } from "../selection";
import { counted } from "../words";
import { Drawing } from "./drawing";
import { exported } from "./export";
import type { Box, View } from "./wire";

const FIRST_BOXES = 60; // what one looks over at a glance; opened calls come beside
const MOST_BOXES = 400;

interface Asked { call: number; open: string[] }

function pathOf({ call, open }: Asked, most = FIRST_BOXES): string {
  if (!open.length) return `graph?root=call:${call}&max=${most}`;
  return `graph?root=call:${call}&max=${MOST_BOXES}&depth=0&open=${open.join(",")}`;
}

const opens = (box: Box): string[] => {
  const first = box.noted[0] ?? box.instances[0] ?? box.module_call;
  return box.kind === "fold" || box.kind === "call" ? (first === null || first === undefined ? [] : [`c${first}`]) : [];
};

const openOf = (): string[] => (parameter("open") ?? "").split(",").filter((name) => /^c\d{1,9}$/.test(name)).slice(0, 100);

export function GraphPane({ base, calls, first }: { base: string; calls: number; first: number }) {
  const start = Number(selection().call ?? first);
  const [call, setCall] = useState(start < calls ? start : first);
  const [open, setOpen] = useState<string[]>(openOf);
  const [asked, setAsked] = useState(call);
  const [query, setQuery] = useState("");
  const [most, setMost] = useState(FIRST_BOXES);
  useEffect(() => { // a slider on its way asks for nothing
    const timer = setTimeout(() => setAsked(call), 120);
    return () => clearTimeout(timer);
  }, [call]);
  useEffect(() => onSelection((now) => {
    if (now.call !== undefined && Number(now.call) < calls) setCall(Number(now.call));
  }), [calls]);
  const { value, problem, again } = useAnswer<View>(base, pathOf({ call: asked, open }, most));
  const svg = useRef<SVGSVGElement>(null);
  const found = useMemo(() => matching(value, query), [value, query]);
  const change = (names: string[]) => { setOpen(names); setParameters({ open: names.join(",") || null }); };
  const go = (to: number) => { const next = Math.max(0, Math.min(calls - 1, to)); setCall(next); select({ ...selection(), call: String(next) }, false); };
  useKeys({ "[": () => go(call - 1), "]": () => go(call + 1) });
  return (
    <>
      <div class="bar">
        <Calls call={call} calls={calls} go={go} />
        <label>Find <input type="search" value={query} onInput={(event) => setQuery(event.currentTarget.value)} placeholder="name or kind" /></label>
        {query && <span role="status">{counted(found.size, "box", "boxes")}</span>}
        {value && (value.hidden.nodes ?? 0) > 0 && most < MOST_BOXES && !isReport() && <button type="button" onClick={() => setMost(MOST_BOXES)}>Up to {MOST_BOXES} boxes</button>}
        {open.length > 0 && <button type="button" onClick={() => change([])}>Close all</button>}
        {value && value.boxes.length > 0 && <button type="button" onClick={() => svg.current && exported(svg.current, `backward-${call + 1}.svg`)}>Save as SVG</button>}
      </div>
      {problem ? <Failed problem={problem} again={again} />
        : !value ? <Waiting>Asking for the graph of backward call {asked + 1}.</Waiting>
        : !value.boxes.length ? <Waiting>Backward call {asked + 1} was counted, and its graph not walked: that step was not sampled.</Waiting>
        : <Drawing view={value} found={query ? found : null} svg={svg}
            open={(box) => { const names = opens(box).filter((name) => !open.includes(name)); if (names.length) change([...open, ...names]); }}
            canOpen={(box) => opens(box).some((name) => !isReport() || inReport(pathOf({ call: asked, open: [...open, name] })))} />}
      {value && value.boxes.length > 0 && <p class="said-below">{told(value)}</p>}
    </>
  );
}

function Calls({ call, calls, go }: { call: number; calls: number; go: (to: number) => void }) {
  if (calls < 2) return <span>backward call 1 of 1</span>;
  return (
    <span class="slider">
      <button type="button" aria-label="Backward call before" disabled={call === 0} onClick={() => go(call - 1)}>&lsaquo;</button>
      <input type="range" aria-label="Backward call, slider" min={1} max={calls} value={call + 1} onInput={(event) => go(Number(event.currentTarget.value) - 1)} />
      <button type="button" aria-label="Backward call after" disabled={call === calls - 1} onClick={() => go(call + 1)}>&rsaquo;</button>
      <label>backward call <input type="number" min={1} max={calls} value={call + 1} onChange={(event) => go(Number(event.currentTarget.value) - 1)} /></label> of {calls.toLocaleString("en")}
    </span>
  );
}

function matching(view: View | null, query: string): Set<string> {
  const word = query.trim().toLowerCase();
  if (!view || !word) return new Set();
  return new Set(view.boxes.filter((box) => `${box.label} ${box.title}`.toLowerCase().includes(word)).map((box) => box.id));
}

function told(view: View): string {
  const folds = view.boxes.filter((box) => box.kind === "call" || box.kind === "fold").length;
  const drawn = `${counted(view.nodes, "node")} in ${counted(view.boxes.length, "box", "boxes")}`;
  const opened = isReport() ? "" : ": Enter or a double click opens one";
  const closed = folds ? `, ${counted(folds, "of them a closed module call", "of them closed module calls")}${opened}` : "";
  const hidden = Object.entries(view.hidden).filter(([, count]) => count).map(([what, count]) => `${count.toLocaleString("en")} ${what}`).join(", ");
  return `${drawn}${closed}. ${hidden ? `Left out for want of room: ${hidden}. ` : ""}${view.truncated ? "The record was cut: there may be more. " : ""}Gradients flow down, from the loss to the leaves.`;
}

/** Single keys, never while somebody types or holds a modifier. */
export function useKeys(keys: Record<string, () => void>): void {
  const now = useRef(keys);
  now.current = keys;
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const typing = (event.target as Element).closest("input, textarea, select, [contenteditable]");
      if (typing || event.ctrlKey || event.altKey || event.metaKey) return;
      now.current[event.key]?.();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}
