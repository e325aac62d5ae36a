// One chart: uPlot draws it, its colours come from the style sheet, arrows walk over its steps.
import uPlot from "uplot";
import { number } from "../words";
import { broken, type Chart, finite, placeWords, valueAt } from "./lines";

const HEIGHT = 190;
const DASH = [6, 4];
const WHOLE = [...Array(10).keys()].flatMap((power) => [1, 2, 5].map((digit) => digit * 10 ** power)); // between two marks of an axis of steps

/** The colours that the theme gives: a canvas knows no variables, so an element resolves them. */
function resolved(place: HTMLElement, variable: string): string {
  const probe = document.createElement("span");
  probe.className = variable;
  place.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

export class Drawing {
  readonly element = document.createElement("figure");
  private readonly box = document.createElement("div");
  private readonly keys = document.createElement("ul");
  private readonly said = document.createElement("p");
  private readonly seen = new ResizeObserver(() => this.plot?.setSize({ width: this.width(), height: HEIGHT }));
  private plot: uPlot | null = null;
  private shape = "";

  constructor(private chart: Chart) {
    this.element.className = "curve";
    const [caption, title] = [document.createElement("figcaption"), document.createElement("h3")];
    title.textContent = chart.title;
    this.keys.className = "curve-lines";
    caption.append(title, this.keys);
    this.box.tabIndex = 0;
    this.box.setAttribute("role", "group");
    this.box.setAttribute("aria-label", `${chart.title} over steps; arrows tell single steps, Escape shows all`);
    this.box.addEventListener("keydown", (event) => this.walk(event));
    this.said.className = "curve-said";
    this.said.setAttribute("role", "status");
    this.element.append(caption, this.box, this.said);
  }

  /** Draw it as it is now; the part that the reader has zoomed into stays. */
  show(chart: Chart, isRedrawn = false): void {
    this.chart = chart;
    const data = uPlot.join(chart.lines.map((line) => [line.steps, finite(line)] as uPlot.AlignedData));
    const shape = chart.lines.map((line) => line.label).join("\n");
    if (this.plot && shape === this.shape && !isRedrawn) {
      const [first, last] = [this.plot.data[0][0], this.plot.data[0][this.plot.data[0].length - 1]];
      const isWhole = this.plot.scales.x!.min === first && this.plot.scales.x!.max === last;
      this.plot.setData(data, isWhole);
      if (!isWhole) this.plot.redraw();
      return;
    }
    this.shape = shape;
    this.plot?.destroy();
    this.drawKeys();
    this.plot = new uPlot(this.options(), data, this.box);
    this.seen.disconnect();
    this.seen.observe(this.box);
    this.tell(null);
  }

  remove(): void {
    this.seen.disconnect();
    this.plot?.destroy();
    this.element.remove();
  }

  private width(): number {
    return Math.max(200, this.box.clientWidth);
  }

  private options(): uPlot.Options {
    const [muted, grid, bad] = ["line-axis", "line-grid", "line-broken"].map((name) => resolved(this.box, name)) as [string, string, string];
    const axis: uPlot.Axis = { stroke: muted, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 }, font: `12px ${getComputedStyle(this.box).fontFamily}` };
    return {
      width: this.width(), height: HEIGHT, legend: { show: false },
      scales: { x: { time: false } },
      cursor: { sync: { key: "curves" }, y: false },
      axes: [
        { ...axis, size: 30, incrs: WHOLE, values: (_, splits) => splits.map((step) => step.toLocaleString("en")) },
        { ...axis, size: 72, values: (_, splits) => splits.map((value) => number(value)) },
      ],
      series: [{}, ...this.chart.lines.map((line): uPlot.Series => ({
        label: line.label, stroke: resolved(this.box, `line-${line.colour}`), width: 1.6, ...(line.isOther ? { dash: DASH } : {}),
      }))],
      hooks: { draw: [(plot) => this.drawBroken(plot, bad)], setCursor: [(plot) => this.tell(plot.cursor.idx ?? null)] },
    };
  }

  /** A line from top to bottom where a value is NaN or infinite, which has no place on the axis. */
  private drawBroken(plot: uPlot, colour: string): void {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.strokeStyle = colour;
    ctx.lineWidth = 1.5 * devicePixelRatio;
    ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
    ctx.beginPath();
    for (const step of new Set(this.chart.lines.flatMap(broken))) {
      const x = plot.valToPos(step, "x", true);
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
    }
    ctx.stroke();
    ctx.restore();
  }

  private drawKeys(): void {
    this.keys.replaceChildren(...this.chart.lines.map((line) => {
      const item = document.createElement("li");
      const key = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      key.setAttribute("class", "curve-key");
      key.setAttribute("viewBox", "0 0 24 10");
      key.setAttribute("aria-hidden", "true");
      const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      path.setAttribute("class", `line-${line.colour}${line.isOther ? " other" : ""}`);
      path.setAttribute("d", "M1 5h22");
      key.append(path);
      item.append(key, ` ${line.label}`);
      const [first] = broken(line);
      if (first !== undefined) {
        const words = document.createElement("span");
        words.className = "bad-words";
        words.textContent = ` NaN or Inf first ${placeWords(line, first)}`;
        item.append(words);
      }
      return item;
    }));
  }

  /** The values at one step; of a thinned line, only where it has that step. */
  private tell(at: number | null): void {
    const step = at === null ? undefined : this.plot?.data[0][at];
    if (step === undefined) {
      this.said.textContent = "Point at a step for its values; drag to zoom, double click for all.";
      return;
    }
    const told = this.chart.lines.flatMap((line) => {
      const value = valueAt(line, step);
      return value === undefined || value === null ? [] : [`${line.label} ${line.arePeaks ? `at most ${number(value)} ${placeWords(line, step)}` : number(value)}`];
    });
    this.said.textContent = `Step ${step.toLocaleString("en")}: ${told.join("; ") || "not measured"}`;
  }

  private walk(event: KeyboardEvent): void {
    const plot = this.plot;
    if (!plot || event.ctrlKey || event.altKey || event.metaKey) return;
    const steps = plot.data[0];
    const now = plot.cursor.idx ?? -1;
    const next = ({ ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: steps.length - 1 } as Record<string, number>)[event.key];
    if (event.key === "Escape") plot.setScale("x", { min: steps[0]!, max: steps[steps.length - 1]! });
    else if (next === undefined) return;
    else {
      const step = steps[Math.max(0, Math.min(steps.length - 1, next))]!;
      plot.setCursor({ left: plot.valToPos(step, "x"), top: 0 });
    }
    event.preventDefault();
    event.stopPropagation();
  }
}
