// The section "Curves": what the server drew is drawn again from the public API, to point at and to zoom into. While the
// run goes on, its news redraw it.
import { type Problem, request } from "../api";
import { NEWS } from "../news";
import { Drawing } from "./drawing";
import { type Chart, hasValues, type Heat, lineOf, linesOfTensors, type Steps } from "./lines";

const POINTS = 500;

export function startCurves(place: HTMLElement): void {
  const drawn = new Map<string, Drawing>();
  let charts: Chart[] = [];
  const draw = (isRedrawn: boolean) => {
    for (const [title, drawing] of drawn) if (!charts.some((chart) => chart.title === title)) { drawing.remove(); drawn.delete(title); }
    for (const chart of charts) {
      let drawing = drawn.get(chart.title);
      if (!drawing) {
        drawing = new Drawing(chart);
        drawn.set(chart.title, drawing);
        place.append(drawing.element);
      }
      drawing.show(chart, isRedrawn);
    }
  };
  const load = async () => {
    try {
      charts = await loadCharts(place.dataset);
    } catch (problem) {
      return failed(place, problem as Problem);
    }
    if (!charts.length) return;
    place.hidden = false; // before it is drawn: a hidden element has no width
    document.getElementById("curves-twin")?.remove();
    draw(false);
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw(true));
  document.addEventListener(NEWS, () => void load());
  void load();
}

async function loadCharts({ curves, other, stat, kind, name, title }: DOMStringMap): Promise<Chart[]> {
  const bases = [curves!, ...(other ? [other] : [])];
  const steps = await Promise.all(bases.map((base) => request<Steps>(`${base}/steps?points=${POINTS}`)));
  const charts: Chart[] = [
    { title: "Loss", lines: steps.map((found, run) => lineOf(bases[run]!, run > 0, found, found.loss)) },
    { title: "Gradient norm of all parameters", lines: steps.map((found, run) => lineOf(bases[run]!, run > 0, found, found.grad_norm)) },
  ];
  if (name) {
    const path = `series?points=${POINTS}&stat=${stat}&kind=${kind}&name=${encodeURIComponent(name)}`;
    const heats = await Promise.all(bases.map(async (base) => ({ base, heat: await request<Heat>(`${base}/${path}`) })));
    charts.push({ title: title!, lines: linesOfTensors(heats) });
  }
  return charts.map((chart) => ({ ...chart, lines: chart.lines.filter(hasValues) })).filter((chart) => chart.lines.length);
}

/** What the server drew stays where nothing better can be had; the reason stands below it. */
function failed(place: HTMLElement, { title, detail }: Problem): void {
  let said = place.parentElement?.querySelector(".curves-failed");
  if (!said) {
    said = document.createElement("p");
    said.className = "curves-failed said-below";
    said.setAttribute("role", "status");
    place.after(said);
  }
  said.textContent = `The curves could not be loaded. ${title}. ${detail}`;
}
