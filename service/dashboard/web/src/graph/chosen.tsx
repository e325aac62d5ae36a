// What the chosen box holds, in words: the gradients that came to it, its parameters, and the ways into it.
import { isReport } from "../api";
import { counted, cut, number } from "../words";
import { type Box, rangeOf } from "./wire";

const GRADS: Record<string, string> = { present: "has a gradient", none: "grad None", "not-read": "grad not read" };

export function Chosen({ box, base, open, focus }: { box: Box; base: string; open: (() => void) | null; focus: (() => void) | null }) {
  const range = rangeOf(box, number);
  return (
    <div class="chosen-box" role="status">
      <p><strong>{cut(box.title, 300)}</strong>{range && <>. Norm of the gradient that came to it: {range}</>}.</p>
      {box.parameters.length > 0 && (
        <ul>
          {box.parameters.map((one) => (
            <li key={one.tensor}><span class={`dot dot-${one.grad}`} aria-hidden="true" /> {isReport() || one.times > 1 ? <span class="mono">{cut(one.name, 80)}</span> : <a class="mono" href={`${base.replace("/v1", "")}/tensors/${one.tensor}`}>{cut(one.name, 80)}</a>}{one.times > 1 ? ` \u00d7${one.times}` : ""}, {GRADS[one.grad] ?? one.grad}</li>
          ))}
          {box.more_parameters > 0 && <li>and {counted(box.more_parameters, "more kind")}</li>}
        </ul>
      )}
      {(open || focus) && <p class="ways">{open && <button type="button" onClick={open}>Open it</button>} {focus && <button type="button" onClick={focus}>Show it alone</button>}</p>}
    </div>
  );
}
