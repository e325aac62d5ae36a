// What a click sends, as any client would: a program of the page, or an audit of the runs that are ticked.

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
  said.textContent = "Sending it.";
  const told = await posted<{ id?: string }>("/v1/runs", { source });
  if (typeof told !== "string" && told.id) return location.assign(`/runs/${encodeURIComponent(told.id)}`);
  said.textContent = typeof told === "string" ? told : "The service took it, and told no run.";
  button.disabled = false;
}

/** The answer, or in words why there is none. */
async function posted<T>(address: string, body: unknown): Promise<T | string> {
  const token = document.querySelector<HTMLMetaElement>("meta[name=csrf-token]")?.content;
  try {
    const answer = await fetch(address, {
      method: "POST",
      headers: { "Content-Type": "application/json", Accept: "application/json", ...(token ? { "X-CSRF-Token": token } : {}) },
      body: JSON.stringify(body),
    });
    const told = (await answer.json()) as { title?: string; detail?: string };
    return answer.ok ? (told as T) : `${told.title ?? `HTTP ${answer.status}`}. ${told.detail ?? ""}`;
  } catch {
    return "The server does not answer.";
  }
}

/** In the list of runs: those that are ticked become one audit. */
export function startAudits(): void {
  const place = document.querySelector<HTMLElement>("[data-audit-ticked]");
  if (!place) return;
  const [button, said] = [document.createElement("button"), document.createElement("span")];
  button.type = "button";
  button.textContent = "Audit those that are ticked";
  said.setAttribute("role", "status");
  button.addEventListener("click", () => void audited(button, said));
  place.append(button, " ", said);
  place.hidden = false;
}

async function audited(button: HTMLButtonElement, said: HTMLElement): Promise<void> {
  const runs = [...document.querySelectorAll<HTMLInputElement>("input[name=run]:checked")].map((one) => one.value);
  if (!runs.length) { said.textContent = "Tick the runs that are to be judged together."; return; }
  button.disabled = true;
  const told = await posted<{ id: string; links?: { page?: string; self?: string } }>("/v1/audits", { items: runs.map((run) => ({ custom_id: run, run })) });
  button.disabled = false;
  if (typeof told === "string") { said.textContent = told; return; }
  location.assign(told.links?.page ?? told.links?.self ?? `/v1/audits/${encodeURIComponent(told.id)}`);
}
