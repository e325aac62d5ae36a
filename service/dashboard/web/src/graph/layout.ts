// Boxes in ranks below each other, loss on top: longest-path ranks, barycentre sweeps, then places. O(V + E) a sweep.
// Every loop is iterative: a recursion overflows at some thousand boxes.

export interface Sized { id: string; width: number; height: number }
export interface Link { start: string; end: string }
export interface Place { x: number; y: number }
export interface Layout { places: Map<string, Place>; width: number; height: number }

const GAP = 18;
const RANK_GAP = 34;
const SWEEPS = 4;

export function layout(boxes: readonly Sized[], links: readonly Link[]): Layout {
  const below = new Map<string, string[]>();
  const above = new Map<string, string[]>();
  for (const box of boxes) { below.set(box.id, []); above.set(box.id, []); }
  for (const { start, end } of links) {
    if (start === end || !below.has(start) || !below.has(end)) continue;
    below.get(start)!.push(end);
    above.get(end)!.push(start);
  }
  const ranks = ordered(boxes, ranked(boxes, below, above), below, above);
  return placed(boxes, ranks, below, above);
}

function ranked(boxes: readonly Sized[], below: Map<string, string[]>, above: Map<string, string[]>): Map<string, number> {
  const rank = new Map<string, number>();
  const waits = new Map(boxes.map((box) => [box.id, above.get(box.id)!.length]));
  const ready = boxes.filter((box) => waits.get(box.id) === 0).map((box) => box.id);
  for (const id of ready) rank.set(id, 0);
  for (let at = 0; at < ready.length; at++) {
    const id = ready[at]!;
    for (const next of below.get(id)!) {
      rank.set(next, Math.max(rank.get(next) ?? 0, rank.get(id)! + 1));
      const left = waits.get(next)! - 1;
      waits.set(next, left);
      if (left === 0) ready.push(next);
    }
  }
  for (const box of boxes) if (!rank.has(box.id)) rank.set(box.id, 0); // in a circle, which a damaged record may have
  // A leaf stands right below what it feeds, not below everything.
  for (const box of boxes) {
    const over = above.get(box.id)!;
    if (over.length && !below.get(box.id)!.length) rank.set(box.id, 1 + Math.max(...over.map((id) => rank.get(id)!)));
  }
  return rank;
}

function ordered(boxes: readonly Sized[], rank: Map<string, number>, below: Map<string, string[]>, above: Map<string, string[]>): string[][] {
  const ranks: string[][] = [];
  for (const box of boxes) (ranks[rank.get(box.id)!] ??= []).push(box.id);
  const rows = [...ranks].map((row) => row ?? []);
  const at = new Map<string, number>();
  const number = (row: string[]) => row.forEach((id, place) => at.set(id, place / Math.max(1, row.length - 1 || 1)));
  rows.forEach(number);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const down = sweep % 2 === 0;
    const order = down ? rows : [...rows].reverse();
    for (const row of order) {
      const near = down ? above : below;
      const middle = new Map(row.map((id) => {
        const others = near.get(id)!;
        return [id, others.length ? others.reduce((sum, other) => sum + at.get(other)!, 0) / others.length : at.get(id)!];
      }));
      row.sort((a, b) => middle.get(a)! - middle.get(b)!);
      number(row);
    }
  }
  return rows;
}

function placed(boxes: readonly Sized[], rows: string[][], below: Map<string, string[]>, above: Map<string, string[]>): Layout {
  const size = new Map(boxes.map((box) => [box.id, box]));
  const x = new Map<string, number>(); // of the middle
  for (const row of rows) {
    let left = 0;
    for (const id of row) { const { width } = size.get(id)!; x.set(id, left + width / 2); left += width + GAP; }
    const half = (left - GAP) / 2;
    for (const id of row) x.set(id, x.get(id)! - half);
  }
  for (let sweep = 0; sweep < 2 * SWEEPS; sweep++) {
    const near = sweep % 2 === 0 ? above : below;
    for (const row of sweep % 2 === 0 ? rows : [...rows].reverse()) nudged(row, near, x, size);
  }
  let [least, most, y] = [0, 0, 0];
  const places = new Map<string, Place>();
  for (const row of rows) {
    let tall = 0;
    for (const id of row) {
      const { width, height } = size.get(id)!;
      places.set(id, { x: x.get(id)! - width / 2, y });
      tall = Math.max(tall, height);
      least = Math.min(least, x.get(id)! - width / 2);
      most = Math.max(most, x.get(id)! + width / 2);
    }
    if (row.length) y += tall + RANK_GAP;
  }
  for (const place of places.values()) place.x -= least;
  return { places, width: most - least, height: Math.max(0, y - RANK_GAP) };
}

/** Each box towards the mean of its neighbours, in order, without overlap. */
function nudged(row: string[], near: Map<string, string[]>, x: Map<string, number>, size: Map<string, Sized>): void {
  const wanted = row.map((id) => {
    const others = near.get(id)!;
    return others.length ? others.reduce((sum, other) => sum + x.get(other)!, 0) / others.length : x.get(id)!;
  });
  const got: number[] = [];
  row.forEach((id, at) => {
    const before = at ? got[at - 1]! + (size.get(row[at - 1]!)!.width + size.get(id)!.width) / 2 + GAP : -Infinity;
    got.push(Math.max(wanted[at]!, before));
  });
  const shift = row.length ? got.reduce((sum, value, at) => sum + value - wanted[at]!, 0) / row.length : 0;
  row.forEach((id, at) => x.set(id, got[at]! - shift));
}
