// What every pane has beside its picture: words while it loads, and when it fails what to do.
import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { ask, type Problem } from "./api";

export type Loaded<T> = { value: T | null; problem: Problem | null; again: () => void };

/** The answer at `path`; the one before stays until the next is there. `null`: nothing is asked. */
export function useAnswer<T>(base: string, path: string | null): Loaded<T> {
  const [value, setValue] = useState<T | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    if (path === null) return;
    let wanted = true;
    ask<T>(base, path).then(
      (found) => { if (wanted) { setValue(found); setProblem(null); } },
      (failed: Problem) => { if (wanted) setProblem(failed); },
    );
    return () => { wanted = false; };
  }, [base, path, turn]);
  return { value, problem, again: () => setTurn(turn + 1) };
}

/** The pixels between the paddings of an element, as they are now: what is drawn to them is neither cut off nor scaled. */
export function useRoom(outer: RefObject<HTMLElement | null>): number {
  const [room, setRoom] = useState(600);
  useLayoutEffect(() => {
    const watched = outer.current!;
    const inner = () => {
      const { paddingLeft, paddingRight } = getComputedStyle(watched);
      setRoom(watched.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight));
    };
    const seen = new ResizeObserver(inner);
    seen.observe(watched);
    inner();
    return () => seen.disconnect();
  }, []);
  return room;
}

export function Failed({ problem, again }: { problem: Problem; again: () => void }) {
  return (
    <div class="inner calm" role="status">
      <p><strong>{problem.title}.</strong> {problem.detail}{problem.request && <> Request <code>{problem.request}</code>.</>}</p>
      <p><button type="button" onClick={again}>Try again</button></p>
    </div>
  );
}

export function Waiting({ children }: { children: ComponentChildren }) {
  return <div class="inner calm waiting"><p>{children}</p></div>;
}
