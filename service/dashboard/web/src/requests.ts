// What a click sends, as any client would: a program of the page, or an audit of the runs that are ticked.
import { request, type Problem } from "./api";

const words = ({ title, detail }: Problem): string => `${title}. ${detail}`;

export function startExamples(): void {
  let isFirst = true; // one loud button a page
  for (const place of document.querySelectorAll<HTMLElement>("[data-run-example]")) {
    const program = document.getElementById(place.dataset.runExample ?? "");
    if (!program) continue;
    const [button, said] = [document.createElement("button"), document.createElement("span")];
    button.type = "button";
    if (isFirst) button.className = "first-choice";
    isFirst = false;
    button.textContent = "Run this program";
    said.setAttribute("role", "status");
    button.addEventListener("click", () => void sent(program.textContent ?? "", button, said));
    place.append(button, " ", said);
    place.hidden = false;
  }
}

async function sent(source: string, button: HTMLButtonElement, said: HTMLElement): Promise<void> {
  button.disabled = true;
  said.textContent = "Sending the program.";
  try {
    const run = await request<{ id: string }>("/v1/runs", "POST", { source });
    location.assign(`/runs/${encodeURIComponent(run.id)}`);
  } catch (failed) {
    said.textContent = words(failed as Problem);
    button.disabled = false;
  }
}

/** In the list of runs: those that are ticked become one audit. */
export function startAudits(): void {
  const place = document.querySelector<HTMLElement>("[data-audit-ticked]");
  if (!place) return;
  const [button, said] = [document.createElement("button"), document.createElement("span")];
  button.type = "button";
  button.textContent = "Audit the ticked runs";
  said.setAttribute("role", "status");
  button.addEventListener("click", () => void audited(button, said));
  place.append(button, " ", said);
  place.hidden = false;
}

async function audited(button: HTMLButtonElement, said: HTMLElement): Promise<void> {
  const runs = [...document.querySelectorAll<HTMLInputElement>("input[name=run]:checked")].map((one) => one.value);
  if (!runs.length) { said.textContent = "Tick the runs to audit first."; return; }
  button.disabled = true;
  try {
    const audit = await request<{ id: string }>("/v1/audits", "POST", { items: runs.map((run) => ({ custom_id: run, run })) });
    location.assign(`/audits/${encodeURIComponent(audit.id)}`);
  } catch (failed) {
    said.textContent = words(failed as Problem);
    button.disabled = false;
  }
}
