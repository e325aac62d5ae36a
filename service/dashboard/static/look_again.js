// While a run is on: ask for its state, slower and slower, and load the page anew once it has changed.
"use strict";

const run = document.currentScript.dataset.run;
let seconds = 0.7;
let first = null;

async function look() {
  try {
    const answer = await fetch(`/v1/runs/${run}`, { headers: { Accept: "application/json" } });
    if (answer.ok) {
      const now = await answer.json();
      const state = `${now.status} ${now.attempt} ${now.queue_position}`;
      if (now.ended || (first !== null && state !== first)) return location.reload();
      first = state;
    }
  } catch {
    // The server is away for a moment; the next look tells.
  }
  seconds = Math.min(10, seconds * 1.3);
  setTimeout(look, seconds * 1000);
}

setTimeout(look, seconds * 1000);
