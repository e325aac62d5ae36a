// The signs of a tensor and of a level, drawn as the server's pages draw them: shape first, a word beside it.
import type { Binding } from "./wire";

const isBad = (norm: number | string | null): boolean => typeof norm === "string";

export function wordsOf(binding: Binding): string {
  if (binding.is_leaf === null || binding.requires_grad === null) return "not captured";
  const words = [binding.is_leaf ? "leaf" : "not leaf"];
  if (!binding.requires_grad) words.push("requires no grad");
  if (binding.retains_grad && !binding.is_leaf) words.push("retains grad");
  if (binding.grad !== "present") { if (binding.requires_grad) words.push("grad None"); }
  else if (binding.grad_norm === null) words.push("grad present");
  else if (isBad(binding.grad_norm)) words.push("grad NaN or Inf");
  else words.push(binding.grad_norm === 0 ? "grad all zero" : `|g| ${Number((binding.grad_norm as number).toPrecision(4))}`);
  return words.join(", ");
}

export function TensorSign({ of }: { of: Binding }) {
  const present = of.grad === "present";
  const [bad, zero] = [present && isBad(of.grad_norm), present && of.grad_norm === 0];
  const names = ["sign", of.is_leaf && "leaf", !of.requires_grad && "nograd", bad ? "bad" : present && !zero && "filled"].filter(Boolean).join(" ");
  return (
    <svg class={names} viewBox="0 0 20 20" aria-hidden="true">
      {of.is_leaf === false ? <rect class="shape" x="3" y="3" width="14" height="14" /> : <circle class="shape" cx="10" cy="10" r="7" />}
      {of.is_leaf === null && <text class="ask" x="7" y="14">?</text>}
      {zero && <path class="part" d={of.is_leaf ? "M3 10a7 7 0 0 0 14 0z" : "M3 10h14v7H3z"} />}
      {bad && <path class="cross" d="M6.5 6.5l7 7m0-7l-7 7" />}
      {of.retains_grad && !of.is_leaf && <path class="corner" d="M12 0h8v8z" />}
    </svg>
  );
}

export function LevelMark({ level }: { level: string }) {
  if (level === "error") return <svg class="mark mark-error" viewBox="0 0 20 20" aria-hidden="true"><path d="M6 1h8l5 5v8l-5 5H6l-5-5V6z" /></svg>;
  if (level === "warning") return <svg class="mark mark-warning" viewBox="0 0 20 20" aria-hidden="true"><path d="M10 1.5l9 16.5H1z" /></svg>;
  return <svg class="mark mark-note" viewBox="0 0 20 20" aria-hidden="true"><circle cx="10" cy="10" r="8" /><path d="M10 9v6M10 5v2" /></svg>;
}
