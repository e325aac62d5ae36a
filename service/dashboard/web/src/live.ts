// While a run goes on: its events come as a stream, and what each is about is asked for. What is read is not replaced
// under the reader: only the pane "Live" and the curves change; for all else the pane offers to load the page again.
import { type Problem, request } from "./api";
import { NEWS } from "./news";
import { counted, lasting, visible } from "./words";

interface Level { error: number; warning: number; note: number; ruleset: string | null }
interface Run {
  status: string; ended: boolean; attempt: number; queue_position: number | null; findings: Level;
  created_at: string; started_at: string | null; recorder: { heard_at: string } | null;
}
interface Finding { id: string; level: string; rule: { code: string; name: string; url: string }; location: { path: string; region: { start_line: number } } }
interface Output { stdout: { tail: string; total_bytes: number }; stderr: { tail: string; total_bytes: number } }

const KINDS = ["queued", "claimed", "requeued", "cancel-requested", "progress", "judged", "status"];
const LEAST_PAUSE = 1000; // between two times that the page asks, however many events come
const QUIET = 30_000; // without an event, what no event tells is asked for: the queue's length, the last heartbeat
const RETRIES = [5_000, 60_000] as const;
const SILENT = 600_000; // as `words.py` has it
const MOST_FINDINGS = 5;

export function follow(place: HTMLElement): void {
  const base = place.dataset.live!;
  const skew = Date.now() - Date.parse(place.dataset.now!); // this machine's clock is not the server's
  const part = (name: string) => place.querySelector<HTMLElement>(`[data-live-${name}]`);
  let after = Number(place.dataset.after);
  let retry: number = RETRIES[0];
  let source: EventSource | null = null;
  let quiet: ReturnType<typeof setTimeout> | undefined;
  let [isAsking, isNew, isOver] = [false, false, false];
  let before: string | null = null;

  const link = (words: string) => { const said = part("link"); if (said) said.textContent = words; };
  const connect = () => {
    if (isOver) return;
    source = new EventSource(`${base}/events?after=${after}`);
    for (const kind of KINDS) source.addEventListener(kind, (event) => { after = Number(event.lastEventId) || after; void news(); });
    source.addEventListener("end", () => { source?.close(); void news(); });
    source.addEventListener("open", () => { retry = RETRIES[0]; link("connected: news come by themselves"); void news(); });
    source.addEventListener("error", () => {
      if (isOver || source?.readyState !== EventSource.CLOSED) return link("connection lost, connecting again");
      link("the server does not answer, trying again");
      setTimeout(connect, retry);
      retry = Math.min(RETRIES[1], retry * 2);
      void news(); // a stream that is refused may be that of a run which has ended
    });
  };
  const news = async () => {
    isNew = true;
    if (isAsking || isOver) return;
    isAsking = true;
    while (isNew && !isOver) {
      isNew = false;
      await look().catch((refused: Problem) => link(refused.title));
      await new Promise((done) => setTimeout(done, LEAST_PAUSE));
    }
    isAsking = false;
  };
  const look = async () => {
    clearTimeout(quiet);
    quiet = setTimeout(() => void news(), QUIET);
    const run = await request<Run>(base);
    const state = `${run.status} ${run.attempt} ${run.queue_position}`;
    const hasChanged = run.ended || (before !== null && before !== state);
    before = state;
    if (hasChanged && place.dataset.empty === "true") return location.reload();
    if (hasChanged) offer(part("news")!, run);
    showRun(run);
    await Promise.all([showSteps(), showOutput(), showFindings(run)]);
    document.dispatchEvent(new Event(NEWS));
    if (run.ended) end();
  };
  const end = () => {
    isOver = true;
    source?.close();
    clearTimeout(quiet);
    clearInterval(ticking);
    link("the run has ended");
  };
  const showRun = (run: Run) => {
    part("status")!.textContent = run.status;
    part("since")!.dataset.liveSince = run.started_at ?? run.created_at;
    if (run.recorder && part("heard")) part("heard")!.dataset.liveHeard = run.recorder.heard_at;
    tick();
  };
  const showSteps = async () => {
    const { count } = await request<{ count: number }>(`${base}/steps?points=1`);
    part("steps")!.textContent = count.toLocaleString("en");
  };
  const showOutput = async () => {
    const pane = part("output");
    if (!pane) return;
    const { stdout, stderr } = await request<Output>(`${base}/output`);
    const isAtEnd = pane.scrollTop + pane.clientHeight >= pane.scrollHeight - 8;
    pane.textContent = visible(stdout.tail + stderr.tail);
    if (isAtEnd) pane.scrollTop = pane.scrollHeight;
  };
  const showFindings = async ({ findings }: Run) => {
    const total = findings.error + findings.warning + findings.note;
    part("count")!.textContent = findings.ruleset === null ? "not judged yet" : String(total);
    const list = part("findings")!;
    const { items } = total ? await request<{ items: Finding[] }>(`${base}/findings?limit=${MOST_FINDINGS}`) : { items: [] };
    const fresh = items.map((item) => item.id).join();
    if (list.dataset.shown === fresh) return; // else a screen reader would read them again
    list.dataset.shown = fresh;
    list.replaceChildren(...items.map(findingRow), ...(total > items.length ? [row(counted(total - items.length, "more finding"))] : []));
    list.hidden = !total;
  };
  const tick = () => {
    const now = Date.now() - skew;
    const [since, heard] = [part("since")!, part("heard")];
    since.textContent = lasting((now - Date.parse(since.dataset.liveSince!)) / 1000);
    if (!heard) return;
    const silent = now - Date.parse(heard.dataset.liveHeard!);
    heard.textContent = `${lasting(silent / 1000)} ago`;
    heard.className = silent > SILENT ? "bad-words" : "";
  };
  const ticking = setInterval(tick, 1000);
  connect();
}

function row(...parts: (string | Node)[]): HTMLLIElement {
  const made = document.createElement("li");
  made.append(...parts);
  return made;
}

function findingRow({ level, rule, location: { path, region } }: Finding): HTMLLIElement {
  const manual = document.createElement("a");
  manual.href = rule.url;
  manual.textContent = `${rule.code} ${rule.name}`;
  return row(`${level}: `, manual, ` ${visible(path)}, line ${region.start_line}`);
}

function offer(bar: HTMLElement, now: Run): void {
  bar.textContent = now.ended ? `The run has ended: ${now.status}. ` : `The run has changed: ${now.status}. `;
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Show it";
  button.addEventListener("click", () => location.reload());
  bar.append(button);
  bar.hidden = false;
}
