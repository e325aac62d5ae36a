// The marks of levels, as templates/signs.html draws them; the word stands beside each.
import type { Level } from "./wire";

export function LevelMark({ level }: { level: Level }) {
  if (level === "error") return <svg class="mark mark-error" viewBox="0 0 20 20" aria-hidden="true"><path d="M6 1h8l5 5v8l-5 5H6l-5-5V6z" /></svg>;
  if (level === "warning") return <svg class="mark mark-warning" viewBox="0 0 20 20" aria-hidden="true"><path d="M10 1.5l9 16.5H1z" /></svg>;
  return <svg class="mark mark-note" viewBox="0 0 20 20" aria-hidden="true"><circle cx="10" cy="10" r="8" /><path d="M10 9v6M10 5v2" /></svg>;
}
