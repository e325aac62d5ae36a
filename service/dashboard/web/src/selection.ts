// One selection for all panes, kept in the address: the only reader and writer of the query string.
// Whoever opens the copied address sees the same line, tensor and backward call.

export interface Selection { line?: string; t?: string; call?: string }

const KEYS = ["line", "t", "call"] as const;
type Listener = (now: Selection) => void;

const listeners = new Set<Listener>();
let now: Selection = {};

export const selection = (): Selection => now;

export function onSelection(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function parameter(name: string): string | null {
  return new URLSearchParams(location.search).get(name);
}

/** Keys that are not named survive; null removes one. */
export function setParameters(given: Record<string, string | null>, push = false): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === "") query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  const address = `${location.pathname}${text ? `?${text}` : ""}${location.hash}`;
  if (address !== `${location.pathname}${location.search}${location.hash}`) {
    history[push ? "pushState" : "replaceState"](null, "", address);
  }
}

export function select(given: Selection, push = true): void {
  setParameters({ line: given.line ?? null, t: given.t ?? null, call: given.call ?? null }, push);
  apply(given);
}

function apply(given: Selection): void {
  now = given;
  mark();
  for (const listener of listeners) listener(now);
}

/** Marks what the page's own elements have of the selection, and scrolls panes, never the page. */
function mark(): void {
  for (const element of document.querySelectorAll(".chosen")) element.classList.remove("chosen");
  const shown = new Set<Element>();
  for (const key of KEYS) {
    const value = now[key];
    if (value === undefined) continue;
    for (const element of document.querySelectorAll(`[data-${key}="${CSS.escape(value)}"]`)) {
      element.classList.add("chosen");
      const pane = element.closest(".holds");
      if (pane && !shown.has(pane)) {
        shown.add(pane);
        reveal(pane, element);
      }
    }
  }
}

function reveal(pane: Element, element: Element): void {
  const [outer, inner] = [pane.getBoundingClientRect(), element.getBoundingClientRect()];
  if (inner.top < outer.top || inner.bottom > outer.bottom) {
    pane.scrollTop += inner.top - outer.top - Math.max(0, (outer.height - inner.height) / 3);
  }
}

function ofHash(): Selection | null {
  const found = /^#(?:L(\d+)|t(\d+)|call-(\d+))$/.exec(location.hash);
  if (!found) return null;
  return found[1] ? { line: found[1] } : found[2] ? { t: found[2] } : { call: found[3] as string };
}

function ofAddress(): Selection {
  const found: Selection = {};
  for (const key of KEYS) {
    const value = parameter(key);
    if (value !== null && /^\d{1,9}$/.test(value)) found[key] = value;
  }
  return found;
}

function ofElement(element: Element): Selection {
  const found: Selection = {};
  for (const key of KEYS) {
    const value = element.getAttribute(`data-${key}`) ?? element.getAttribute(`data-with-${key}`);
    if (value !== null) found[key] = value;
  }
  return found;
}

const same = (a: Selection, b: Selection): boolean => KEYS.every((key) => a[key] === b[key]);

/** All that the first one selects, the second one selects too. */
const isPart = (a: Selection, b: Selection): boolean => KEYS.every((key) => a[key] === undefined || a[key] === b[key]);

export function start(): void {
  document.addEventListener("click", (event) => {
    const target = event.target as Element;
    const line = /^#L(\d+)$/.exec(target.closest("a")?.getAttribute("href") ?? "")?.[1];
    const about = line === undefined ? null : target.closest(`[data-line="${line}"]`);
    if (about) select(ofElement(about), false); // the link goes to the line; its tensor and call are chosen with it
    if (target.closest("a, button, input, select, summary, label") || String(getSelection() ?? "")) return;
    const element = target.closest("[data-line], [data-t], [data-call]");
    if (!element) return;
    const found = ofElement(element);
    select(same(found, now) ? {} : found);
  });
  addEventListener("hashchange", () => {
    const found = ofHash();
    if (found && !isPart(found, ofAddress())) select(found, false);
  });
  addEventListener("popstate", () => {
    const [hash, address] = [ofHash(), ofAddress()];
    const found = hash && !isPart(hash, address) ? hash : address;
    if (!same(found, now)) apply(found);
  });
  const first = ofAddress();
  apply(same(first, {}) ? (ofHash() ?? {}) : first);
}
