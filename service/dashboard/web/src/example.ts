// A program on the page that one click runs: sent as any client would send it, then its page is opened.

export function startExamples(): void {
  for (const place of document.querySelectorAll<HTMLElement>("[data-run-example]")) {
    const program = document.getElementById(place.dataset.runExample ?? "");
    if (!program) continue;
    const [button, said] = [document.createElement("button"), document.createElement("span")];
    button.type = "button";
    button.className = "first-choice";
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
  const token = document.querySelector<HTMLMetaElement>("meta[name=csrf-token]")?.content;
  try {
    const answer = await fetch("/v1/runs", {
      method: "POST",
      headers: { "Content-Type": "application/json", Accept: "application/json", ...(token ? { "X-CSRF-Token": token } : {}) },
      body: JSON.stringify({ source }),
    });
    const told = (await answer.json()) as { id?: string; title?: string; detail?: string };
    if (answer.ok && told.id) return location.assign(`/runs/${encodeURIComponent(told.id)}`);
    said.textContent = `${told.title ?? `HTTP ${answer.status}`}. ${told.detail ?? ""}`;
  } catch {
    said.textContent = "The server does not answer.";
  }
  button.disabled = false;
}
