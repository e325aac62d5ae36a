// The whole drawing small, and which part of it is seen: a press or a drag moves there. Only where it does not fit.
import type { RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Layout } from "./layout";

const [WIDE, TALL] = [150, 110];
const MARGIN = 12; // of the drawing, as its viewBox has it

interface Seen { left: number; top: number; width: number; height: number }

interface Given { laid: Layout; sizes: (id: string) => [number, number]; scale: number; pane: RefObject<HTMLElement | null> }

export function Minimap({ laid, sizes, scale, pane }: Given) {
  const [seen, setSeen] = useState<Seen | null>(null);
  useEffect(() => {
    const outer = pane.current!;
    const look = () => setSeen(
      outer.scrollWidth > outer.clientWidth + 1 || outer.scrollHeight > outer.clientHeight + 1
        ? { left: outer.scrollLeft, top: outer.scrollTop, width: outer.clientWidth, height: outer.clientHeight } : null);
    look();
    outer.addEventListener("scroll", look);
    const resized = new ResizeObserver(look);
    resized.observe(outer);
    return () => { outer.removeEventListener("scroll", look); resized.disconnect(); };
  }, [laid, scale]);
  if (!seen) return null;
  const [width, height] = [laid.width + 2 * MARGIN, laid.height + 2 * MARGIN];
  const shrink = Math.min(WIDE / width, TALL / height);
  const move = (event: PointerEvent) => {
    if (event.buttons !== 1) return;
    const box = (event.currentTarget as Element).getBoundingClientRect();
    pane.current!.scrollTo({
      left: ((event.clientX - box.left) / shrink) * scale - seen.width / 2, top: ((event.clientY - box.top) / shrink) * scale - seen.height / 2,
    });
  };
  const boxes = [...laid.places].map(([id, { x, y }]) => { const [w, h] = sizes(id); return `M${x} ${y}h${w}v${h}h${-w}z`; }).join("");
  return (
    <svg class="minimap" aria-hidden="true" width={width * shrink} height={height * shrink} viewBox={`${-MARGIN} ${-MARGIN} ${width} ${height}`} onPointerDown={move} onPointerMove={move}>
      <path class="boxes" d={boxes} />
      <rect class="seen" x={seen.left / scale - MARGIN} y={seen.top / scale - MARGIN} width={Math.min(width, seen.width / scale)} height={Math.min(height, seen.height / scale)} />
    </svg>
  );
}
