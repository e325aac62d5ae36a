// While a run is on: its state, slower and slower, until it has ended. What is read is not replaced under the reader:
// a page that shows nothing yet is loaded anew, another one offers the news.

interface State { status: string; attempt: number; queue_position: number | null; ended: boolean }

export function follow(base: string, isEmpty: boolean, bar: HTMLElement): void {
  let seconds = 0.7;
  let first: string | null = null;
  const look = async () => {
    try {
      const answer = await fetch(base, { headers: { Accept: "application/json" } });
      if (answer.ok) {
        const now = (await answer.json()) as State;
        const state = `${now.status} ${now.attempt} ${now.queue_position}`;
        const changed = now.ended || (first !== null && state !== first);
        if (changed && isEmpty) return location.reload();
        if (changed) offer(bar, now);
        if (now.ended) return;
        first = state;
      }
    } catch {
      // The server is away for a moment; the next look tells.
    }
    seconds = Math.min(10, seconds * 1.3);
    setTimeout(look, seconds * 1000);
  };
  setTimeout(look, seconds * 1000);
}

function offer(bar: HTMLElement, now: State): void {
  bar.textContent = now.ended ? `The run has ended: ${now.status}. ` : `The run has changed: ${now.status}. `;
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Show it";
  button.addEventListener("click", () => location.reload());
  bar.append(button);
  bar.hidden = false;
}
