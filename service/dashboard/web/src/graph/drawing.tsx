// Boxes and edges as one <svg>; the box in focus is reached by Tab once, then by arrows.
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { onSelection, parameter, select, selection, setParameters } from "../selection";
import { counted, cut, number } from "../words";
import { layout, type Place } from "./layout";
import { Minimap } from "./minimap";
import { type Box, type Edge, isClosed, rangeOf, type View } from "./wire";

const HEIGHT = 42;
const TALL = 60; // a closed box tells its gradients and parameters besides
const LEAST = 0.05;
const ZOOMS = [0.1, 0.2, 0.3, 0.4, 0.55, 0.7, 0.85, 1, 1.25, 1.6];

/** Of a chain of module calls, `model#0.h.3#0.h.3.mlp#0`, the innermost: the title has all of it. */
const nameOf = (box: Box): string => (box.kind === "call" || box.kind === "fold" ? box.label.split(/#[\d*]+\.?/).filter(Boolean).pop() ?? box.label : box.label);
const labelOf = (box: Box): string => cut(nameOf(box), 28) + (box.times > 1 ? ` \u00d7${box.times}` : "");
const DETAIL = 42;
const LONGEST = 400; // characters of what is spoken and of a title
const isBroken = (box: Box): boolean => (box.gradient?.nonfinite ?? 0) > 0;
const widthOf = (box: Box): number => (isBroken(box) ? 22 : 0) + Math.max(96, Math.min(300, Math.max(30 + 8.3 * labelOf(box).length, 28 + 6.3 * cut(box.detail, DETAIL).length, 28 + 6.3 * badgesOf(box).length + (box.parameters.length ? 16 : 0))));
const heightOf = (box: Box): number => (isClosed(box) && badgesOf(box) ? TALL : HEIGHT);

/** The third line of a closed box: what came to it, and how many parameters lie in it. */
function badgesOf(box: Box): string {
  if (!isClosed(box)) return "";
  const range = rangeOf(box, (value) => String(Number(value.toPrecision(2))));
  return [range && `|g| ${range}`, box.parameter_count ? counted(box.parameter_count, "parameter") : ""].filter(Boolean).join(" \u00b7 ");
}
const count = (box: Box, level: string): number => box.findings[level] ?? 0;

export function spoken(box: Box): string {
  const levels = ["error", "warning", "note"].filter((level) => count(box, level)).map((level) => `${count(box, level)} ${level}`);
  const range = rangeOf(box, number);
  return [`${cut(box.label, LONGEST)}${box.times > 1 ? `, ${box.times} times` : ""}`, cut(box.detail, LONGEST), range && `gradient ${range}`, ...levels].filter(Boolean).join(", ");
}

/** The zoom of a link that somebody copied; null: as it fits. */
const zoomOf = (): number | null => { const zoom = Number(parameter("zoom")); return zoom >= LEAST && zoom <= ZOOMS[ZOOMS.length - 1]! ? zoom : null; };

interface Given { view: View; found: Set<string> | null; svg: RefObject<SVGSVGElement | null>; open: (box: Box) => void; canOpen: (box: Box) => boolean; chosenBox: string | null; picked: (id: string) => void }

export function Drawing({ view, found, svg, open, canOpen, chosenBox, picked }: Given) {
  const laid = useMemo(() => layout(view.boxes.map((box) => ({ id: box.id, width: widthOf(box), height: heightOf(box) })), view.edges), [view]);
  const [focus, setFocus] = useState<string | null>(chosenBox);
  const [zoom, setZoom] = useState<number | null>(zoomOf);
  const [, turn] = useState(0);
  const zoomTo = (to: number) => { setZoom(to); setParameters({ zoom: String(Number(to.toFixed(3))) }); };
  const zoomBy = (way: 1 | -1) => zoomTo((way > 0 ? ZOOMS.find((one) => one > scale + 0.01) : ZOOMS.filter((one) => one < scale - 0.01).pop()) ?? scale);
  useZoomKeys((way) => (way === 0 ? zoomTo(1) : zoomBy(way)));
  const outer = useRef<HTMLDivElement>(null);
  useEffect(() => onSelection(() => turn((before) => before + 1)), []);
  const width = laid.width + 24;
  const height = laid.height + 24;
  useLayoutEffect(() => {
    const room = outer.current?.clientWidth ?? 800;
    const whole = Math.min(1, (room - 8) / width);
    setZoom((before) => before ?? (whole < 0.6 ? 0.7 : whole)); // what cannot be read when whole is scrolled
  }, [width]);
  const scale = zoom ?? 1;
  const byId = useMemo(() => new Map(view.boxes.map((box) => [box.id, box])), [view]);
  useLayoutEffect(() => { // the chosen box is in the middle, else the loss, which is on top
    const pane = outer.current;
    if (!pane) return;
    const place = chosenBox === null ? undefined : laid.places.get(chosenBox);
    if (!place) { pane.scrollLeft = (pane.scrollWidth - pane.clientWidth) / 2; return; }
    const box = byId.get(chosenBox!)!;
    pane.scrollTo({ left: (place.x + 12 + widthOf(box) / 2) * scale - pane.clientWidth / 2, top: (place.y + 12 + heightOf(box) / 2) * scale - pane.clientHeight / 2 });
  }, [laid, zoom]);
  const now = selection();
  const move = (from: string, dx: number, dy: number) => {
    const next = nearest(laid.places, byId, from, dx, dy);
    if (!next) return;
    setFocus(next);
    picked(next);
    (svg.current?.querySelector(`[data-box="${CSS.escape(next)}"]`) as SVGElement | null)?.focus();
  };
  const choose = (box: Box) => {
    setFocus(box.id);
    picked(box.id);
    select({ ...(box.line === null ? {} : { line: String(box.line) }), ...(box.tensor === null ? {} : { t: String(box.tensor) }), ...(now.call === undefined ? {} : { call: now.call }) });
  };
  const pressed = (event: KeyboardEvent, box: Box) => {
    const way = ({ ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] } as Record<string, [number, number]>)[event.key];
    if (way) move(box.id, way[0], way[1]);
    else if (event.key === "Enter" && canOpen(box)) open(box);
    else if (event.key === "Enter" || event.key === " ") choose(box);
    else return;
    event.preventDefault();
  };
  const tabbed = focus !== null && byId.has(focus) ? focus : view.boxes[0]?.id;
  return (
    <>
      <div class="zooms">
        <button type="button" aria-label="Smaller" onClick={() => zoomBy(-1)}>&minus;</button>
        <button type="button" aria-label="Larger" onClick={() => zoomBy(1)}>+</button>
        <button type="button" onClick={() => zoomTo(fitting(outer.current!, width, height))}>Fit</button>
      </div>
      <div class="graph-frame">
      <Minimap laid={laid} sizes={(id) => [widthOf(byId.get(id)!), heightOf(byId.get(id)!)]} scale={scale} pane={outer} />
      <div class="graph-view" ref={outer}>
        <svg ref={svg} class="graph-drawn" role="group" aria-label="Graph of the backward call" width={width * scale} height={height * scale} viewBox={`-12 -12 ${width} ${height}`}>
          <g>{view.edges.map((edge) => <Link key={`${edge.start} ${edge.end}`} edge={edge} places={laid.places} byId={byId} />)}</g>
          {view.boxes.map((box) => (
            <Node key={box.id} box={box} place={laid.places.get(box.id)!} tab={box.id === tabbed} dim={found !== null && !found.has(box.id)}
              chosen={(now.t !== undefined && String(box.tensor) === now.t) || (now.t === undefined && now.line !== undefined && String(box.line) === now.line)}
              canOpen={canOpen(box)} choose={() => choose(box)} open={() => open(box)} pressed={(event) => pressed(event, box)} />
          ))}
        </svg>
      </div>
      </div>
    </>
  );
}

/** The zoom at which all of a drawing is seen, in both directions; it is never enlarged. */
function fitting(pane: HTMLElement, width: number, height: number): number {
  const tallest = parseFloat(getComputedStyle(pane).maxHeight) || pane.clientHeight;
  return Math.max(LEAST, Math.min(1, (pane.clientWidth - 8) / width, (tallest - 8) / height));
}

/** `+`, `-` and `0`, where the focus lies in the graph. */
function useZoomKeys(zoom: (way: -1 | 0 | 1) => void): void {
  const now = useRef(zoom);
  now.current = zoom;
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.altKey || event.metaKey || !(event.target as Element).closest(".graph-drawn")) return;
      if (event.key === "+" || event.key === "-" || event.key === "0") now.current(event.key === "+" ? 1 : event.key === "-" ? -1 : 0);
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}

function Link({ edge, places, byId }: { edge: Edge; places: Map<string, Place>; byId: Map<string, Box> }) {
  const [a, b] = [places.get(edge.start), places.get(edge.end)];
  const [from, to] = [byId.get(edge.start), byId.get(edge.end)];
  if (!a || !b || !from || !to) return null;
  const [x1, y1, x2, y2] = [a.x + widthOf(from) / 2, a.y + heightOf(from), b.x + widthOf(to) / 2, b.y];
  const bend = Math.max(16, (y2 - y1) / 2);
  return <path class={edge.wanted ? "edge" : "edge unwanted"} d={`M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`} />;
}

interface NodeGiven { box: Box; place: Place; tab: boolean; dim: boolean; chosen: boolean; canOpen: boolean; choose: () => void; open: () => void; pressed: (event: KeyboardEvent) => void }

function Node({ box, place, tab, dim, chosen, canOpen, choose, open, pressed }: NodeGiven) {
  const [width, height] = [widthOf(box), heightOf(box)];
  const bad = isBroken(box);
  const saved = box.held_nodes + box.freed_nodes;
  const level = ["error", "warning", "note"].find((one) => count(box, one));
  const total = count(box, "error") + count(box, "warning") + count(box, "note");
  return (
    <g class={`box ${box.kind} state-${box.state}${dim ? " dim" : ""}${chosen ? " picked" : ""}${box.is_root ? " root" : ""}${bad ? " broken" : ""}`} data-box={box.id}
      transform={`translate(${place.x} ${place.y})`} role="button" tabIndex={tab ? 0 : -1} aria-pressed={chosen}
      aria-label={spoken(box) + (canOpen ? ", Enter opens it" : "")} onClick={choose} onDblClick={canOpen ? open : undefined} onKeyDown={pressed}>
      <title>{cut(box.title, LONGEST)}</title>
      {box.times > 1 && <rect class="stack" x="5" y="5" width={width} height={height} rx="6" />}
      <rect class="frame" width={width} height={height} rx={box.kind.startsWith("leaf") ? 20 : box.kind === "node" || box.kind === "non-leaf" ? 2 : 6} />
      {saved > 1 && <rect class="part-freed" x="4" y="5" width="5" height={height - 10} />}
      {saved > 1 && box.held_nodes > 0 && <rect class="part-held" x="4" y={5 + (height - 10) * (1 - box.held_nodes / saved)} width="5" height={((height - 10) * box.held_nodes) / saved} />}
      <text x={width / 2} y="17" class="label">{labelOf(box)}</text>
      <text x={width / 2} y="32" class="detail">{cut(box.detail, DETAIL)}</text>
      {height === TALL && <text x={width / 2} y="49" class="detail">{cut(badgesOf(box), 48)}</text>}
      {bad && <path class="cross" d="M5 5l8 8m0 -8l-8 8" />}
      {level && <g class={`flag flag-${level}`}><circle cx={width - 3} cy="3" r="9" /><text x={width - 3} y="7">{total}</text></g>}
    </g>
  );
}

function nearest(places: Map<string, Place>, byId: Map<string, Box>, from: string, dx: number, dy: number): string | null {
  const here = places.get(from);
  if (!here) return null;
  const middle = (id: string, place: Place) => place.x + widthOf(byId.get(id)!) / 2;
  let best: string | null = null;
  let least = Infinity;
  for (const [id, place] of places) {
    const [x, y] = [middle(id, place) - middle(from, here), place.y - here.y];
    const along = x * dx + y * dy;
    const beside = Math.abs(x * dy) + Math.abs(y * dx);
    if (along > 1 && (dx === 0 || Math.abs(y) < 1) && along + 0.5 * beside < least) { least = along + 0.5 * beside; best = id; }
  }
  return best;
}
