// What the whole page can do by itself: copy its address, walk over findings by key, show which keys there are.
import { select, selection } from "./selection";

const KEYS = [["j, k", "next finding, the one before"], ["[, ]", "backward call before, after"], ["/", "find in the graph"], ["arrows", "in the graph: the next box"], ["e, E", "open the chosen box, close all"], ["f, F", "show the chosen call alone, all again"], ["+, -, 0", "in the graph: larger, smaller, as it is"], ["c", "copy the address"], ["Esc", "select nothing"], ["?", "this list"]];

export function startTools(): void {
  const place = document.querySelector<HTMLElement>("[data-tools]");
  if (!place) return;
  const said = document.createElement("span");
  said.setAttribute("role", "status");
  const copy = button("Copy link", () => void copied(said));
  const help = dialog();
  place.append(copy, button("Shortcuts", () => help.showModal()), said, help);
  addEventListener("keydown", (event) => {
    const typing = (event.target as Element).closest("input, textarea, select, [contenteditable]");
    if (typing || event.ctrlKey || event.altKey || event.metaKey || help.open) return;
    if (event.key === "j" || event.key === "k") walk(event.key === "j" ? 1 : -1);
    else if (event.key === "c") void copied(said);
    else if (event.key === "Escape") select({});
    else if (event.key === "?") help.showModal();
  });
}

function button(text: string, pressed: () => void): HTMLButtonElement {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  made.addEventListener("click", pressed);
  return made;
}

async function copied(said: HTMLElement): Promise<void> {
  try {
    await navigator.clipboard.writeText(location.href);
    said.textContent = "Copied.";
  } catch {
    said.textContent = "The browser does not let pages copy here; take the address from its bar.";
  }
}

function walk(way: number): void {
  const cards = [...document.querySelectorAll<HTMLElement>(".findings > li")];
  if (!cards.length) return;
  const at = cards.findIndex((card) => card.classList.contains("chosen"));
  const next = cards[at < 0 ? (way > 0 ? 0 : cards.length - 1) : Math.max(0, Math.min(cards.length - 1, at + way))]!;
  select({ ...(next.dataset.line ? { line: next.dataset.line } : {}), ...(next.dataset.withT ? { t: next.dataset.withT } : {}), ...(next.dataset.withCall ? { call: next.dataset.withCall } : selection().call ? { call: selection().call! } : {}) });
  next.querySelector<HTMLElement>("a")?.focus();
}

function dialog(): HTMLDialogElement {
  const made = document.createElement("dialog");
  made.setAttribute("aria-label", "Keyboard shortcuts");
  const list = document.createElement("dl");
  list.className = "keys";
  for (const [key, what] of KEYS) {
    const [name, words] = [document.createElement("dt"), document.createElement("dd")];
    name.textContent = key!;
    words.textContent = what!;
    const pair = document.createElement("div");
    pair.append(name, words);
    list.append(pair);
  }
  made.append(list, button("Close", () => made.close()));
  return made;
}
