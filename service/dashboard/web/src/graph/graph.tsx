// The autograd graph of one backward call: a slider over the calls, module calls that open and close, search, export.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { inReport, isReport } from "../api";
import { Failed, useAnswer, Waiting } from "../pane";
import { onSelection, parameter, select, selection, setParameters } from "../selection";
import { counted } from "../words";
import { Chosen } from "./chosen";
import { Drawing } from "./drawing";
import { exported } from "./export";
import { Found } from "./found";
import { type Box, isClosed, type View } from "./wire";

const FIRST_BOXES = 60; // what one looks over at a glance; opened calls come beside
const MOST_BOXES = 400;

interface Asked { call: number; open: string[]; depth: number; focus: string | null }

function pathOf({ call, open, depth, focus }: Asked, most = FIRST_BOXES): string {
  const only = focus === null ? "" : `&focus=${focus}`;
  if (!open.length) return `graph?root=call:${call}&max=${most}${only}`;
  return `graph?root=call:${call}&max=${MOST_BOXES}&depth=${depth}&open=${open.join(",")}${only}`;
}

/** What `open` takes to open a box: of several equal ones the first that has findings, else the first. */
export const wayInto = (box: Box): string | null => {
  if (!isClosed(box)) return null;
  const first = box.noted[0] ?? box.instances[0] ?? box.module_call;
  return first === null || first === undefined ? null : `${box.kind === "pattern" ? "p" : "c"}${first}`;
};

const openOf = (): string[] => (parameter("open") ?? "").split(",").filter((name) => /^[cp]\d{1,9}$/.test(name)).slice(0, 100);
const depthOf = (): number => Math.min(64, Number(parameter("depth") ?? 0) || 0);
const focusOf = (): string | null => (/^c\d{1,9}$/.test(parameter("focus") ?? "") ? parameter("focus") : null);

export function GraphPane({ base, calls, first }: { base: string; calls: number; first: number }) {
  const start = Number(selection().call ?? first);
  const [call, setCall] = useState(start < calls ? start : first);
  const [{ open, depth, focus }, setPart] = useState({ open: openOf(), depth: depthOf(), focus: focusOf() });
  const [asked, setAsked] = useState(call);
  const [query, setQueryNow] = useState(parameter("find") ?? "");
  const [most, setMostNow] = useState(parameter("boxes") === String(MOST_BOXES) ? MOST_BOXES : FIRST_BOXES);
  const [picked, setPickedNow] = useState<string | null>(parameter("n"));
  const setQuery = (text: string) => { setQueryNow(text); setParameters({ find: text.slice(0, 100) || null }); };
  const setMost = (boxes: number) => { setMostNow(boxes); setParameters({ boxes: String(boxes) }); };
  const setPicked = (id: string | null) => { setPickedNow(id); setParameters({ n: id }); };
  useEffect(() => { // a slider on its way asks for nothing
    const timer = setTimeout(() => setAsked(call), 120);
    return () => clearTimeout(timer);
  }, [call]);
  useEffect(() => onSelection((now) => {
    if (now.call !== undefined && Number(now.call) < calls) setCall(Number(now.call));
  }), [calls]);
  const path = pathOf({ call: asked, open, depth, focus }, most);
  const { value, problem, again } = useAnswer<View>(base, path);
  const svg = useRef<SVGSVGElement>(null);
  const search = useRef<HTMLInputElement>(null);
  const found = useMemo(() => matching(value, query), [value, query]);
  const box = value?.boxes.find((one) => one.id === picked) ?? null;
  const change = (part: { open: string[]; depth: number; focus: string | null }) => {
    setPart(part);
    setParameters({ open: part.open.join(",") || null, depth: part.open.length && part.depth ? String(part.depth) : null, focus: part.focus });
  };
  const openAll = (names: string[]) => {
    const fresh = names.filter((name) => !open.includes(name));
    if (fresh.length) change({ open: [...open, ...fresh], depth: open.length ? depth : (value?.depth ?? 0), focus });
  };
  const openBox = (one: Box) => { const name = wayInto(one); if (name) openAll([name]); };
  const canOpen = (one: Box): boolean => {
    const name = wayInto(one);
    return name !== null && (!isReport() || inReport(pathOf({ call: asked, open: [...open, name], depth, focus })));
  };
  const canFocus = (one: Box): boolean => !isReport() && (one.kind === "call" || one.kind === "fold");
  const focusOn = (one: Box) => { if (canFocus(one)) change({ open: [], depth: 0, focus: wayInto(one) }); };
  const whole = () => change({ open: [], depth: 0, focus: null });
  const go = (to: number) => { const next = Math.max(0, Math.min(calls - 1, to)); setCall(next); select({ ...selection(), call: String(next) }, false); };
  useKeys({
    "[": () => go(call - 1), "]": () => go(call + 1), "/": () => search.current?.focus(), F: () => focus !== null && whole(),
    e: () => box && (canOpen(box) ? openBox(box) : undefined), E: () => open.length && change({ open: [], depth: 0, focus }), f: () => box && focusOn(box),
  });
  return (
    <>
      <div class="bar">
        <Calls call={call} calls={calls} go={go} />
        <label>Find <input ref={search} type="search" value={query} onInput={(event) => setQuery(event.currentTarget.value)} placeholder="name or kind" /></label>
        {query && <span role="status">{counted(found.size, "box", "boxes")}</span>}
        {value && (value.hidden.nodes ?? 0) > 0 && most < MOST_BOXES && !isReport() && <button type="button" onClick={() => setMost(MOST_BOXES)}>Up to {MOST_BOXES} boxes</button>}
        {open.length > 0 && <button type="button" onClick={() => change({ open: [], depth: 0, focus })}>Close all</button>}
        {focus !== null && <button type="button" onClick={whole}>Back to the whole graph</button>}
        {value && value.boxes.length > 0 && <button type="button" onClick={() => svg.current && exported(svg.current, `backward-${call + 1}.svg`)}>Save as SVG</button>}
      </div>
      {query.trim() !== "" && !isReport() && <Found base={base} path={path} word={query.trim()} open={(match) => { setQuery(""); openAll(match.open); setPicked(match.box); if (match.line !== null) select({ line: String(match.line) }); }} />}
      {problem ? <Failed problem={problem} again={open.length || focus ? () => { whole(); again(); } : again} />
        : !value ? <Waiting>Asking for the graph of backward call {asked + 1}.</Waiting>
        : !value.boxes.length ? <Waiting>Backward call {asked + 1} was counted, and its graph not walked: that step was not sampled.</Waiting>
        : <Drawing view={value} found={query ? found : null} svg={svg} open={openBox} canOpen={canOpen} chosenBox={picked} picked={setPicked} />}
      {box && <Chosen box={box} base={base} open={canOpen(box) ? () => openBox(box) : null} focus={canFocus(box) ? () => focusOn(box) : null} />}
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
  return new Set(view.boxes.filter((box) => [box.label, box.title, ...box.parameters.map(({ name }) => name)].join(" ").toLowerCase().includes(word)).map((box) => box.id));
}

function told(view: View): string {
  const folds = view.boxes.filter(isClosed).length;
  const drawn = `${view.focus === null ? "" : "Only one module call: "}${counted(view.nodes, "node")} in ${counted(view.boxes.length, "box", "boxes")}`;
  const opened = isReport() ? "" : ": Enter or a double click opens one";
  const closed = folds ? `, ${folds === 1 ? "1 of them closed" : `${folds} of them closed`}${opened}` : "";
  const hidden = Object.entries(view.hidden).filter(([, count]) => count).map(([what, count]) => `${count.toLocaleString("en")} ${what}`).join(", ");
  return `${drawn}${closed}. ${hidden ? `Left out for want of room: ${hidden}. ` : ""}${view.truncated ? "The record was cut: there may be more. " : ""}Gradients flow down, from the loss to the leaves.`;
}

/** Single keys, never while somebody types or holds a modifier. */
export function useKeys(keys: Record<string, () => unknown>): void {
  const now = useRef(keys);
  now.current = keys;
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const typing = (event.target as Element).closest("input, textarea, select, [contenteditable], dialog");
      if (typing || event.ctrlKey || event.altKey || event.metaKey || !(event.key in now.current)) return;
      event.preventDefault(); // else "/" would be typed into the field that it leads to
      now.current[event.key]?.();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}
