// The playground beside its editor: run, cancel, share, copy, and the answer with what was edited since.
import { useEffect, useRef, useState } from "preact/hooks";
import { AnswerPanes } from "./answer";
import { COPIES } from "./copies";
import type { Editor } from "./editor";
import { applyEdits, changedLines } from "./edits";
import { request, type Problem } from "../api";
import { filesOf, loadOutput, loadRun, runProgram } from "./sending";
import type { Answer, Opened, Run } from "./wire";

export interface Given { editor: Editor; opened: Opened; firstRun: string | null; onText: (listener: (text: string) => void) => void; onRun: (listener: () => void) => void }

const took = (milliseconds: number): string => (milliseconds < 1000 ? `${Math.round(milliseconds)} ms` : `${(milliseconds / 1000).toFixed(1)} s`);

export function Playground({ editor, opened, firstRun, onText, onRun }: Given) {
  const [text, setText] = useState(editor.text());
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [going, setGoing] = useState<{ run: Run | null } | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const isCanceled = useRef(false);
  const isGoing = useRef(false);

  const show = async (load: () => Promise<Run>, ran: string, since: number | null) => {
    isGoing.current = true;
    setGoing({ run: null });
    setProblem(null);
    try {
      const run = await load();
      const milliseconds = since === null ? null : performance.now() - since;
      setAnswer({ run, output: null, ran, milliseconds });
      if (since !== null && run.snippet) history.replaceState(null, "", `/play/${run.snippet}?run=${run.id}`);
      const output = await loadOutput(run.id);
      setAnswer({ run, output, ran, milliseconds });
    } catch (failed) {
      setProblem(failed as Problem);
    }
    isGoing.current = false;
    setGoing(null);
  };
  const cancel = (run: Run) => void request(`/v1/runs/${run.id}/cancel`, "POST").catch((failed: Problem) => setProblem(failed));
  const start = () => {
    if (isGoing.current) return;
    const ran = editor.text();
    isCanceled.current = false;
    void show(() => runProgram(ran, opened, (run) => {
      setGoing({ run });
      if (isCanceled.current) { isCanceled.current = false; cancel(run); }
    }), ran, performance.now());
  };
  useEffect(() => {
    onText(setText);
    onRun(start);
    if (firstRun) void show(() => loadRun(firstRun), editor.text(), null);
  }, []);

  const stale = answer ? changedLines(answer.ran, text) : new Set<number>();
  return (
    <>
      <Bar going={going} answer={answer} problem={problem} cancel={() => { if (going?.run) cancel(going.run); else isCanceled.current = true; }} goTo={editor.goTo} />
      <Sharing text={text} opened={opened} answer={answer} />
      {answer ? <div class={going ? "play-answer before" : "play-answer"}><AnswerPanes answer={answer} stale={stale} isEdited={answer.ran !== text} goTo={editor.goTo} apply={(edits) => editor.replace(applyEdits(answer.ran, edits))} /></div>
        : <div class="pane"><div class="inner calm"><p>{going ? "The answer will stand here." : "Run the program: its lines stand here, with what autograd did on each."}</p></div></div>}
    </>
  );
}

interface BarGiven { going: { run: Run | null } | null; answer: Answer | null; problem: Problem | null; cancel: () => void; goTo: (line: number) => void }

function Bar({ going, answer, problem, cancel, goTo }: BarGiven) {
  const run = answer?.run;
  return (
    <div class="play-said" role="status">
      {going ? <><span>{going.run === null ? "Running." : going.run.status === "queued" ? `Waiting for a worker${going.run.queue_position ? `, place ${going.run.queue_position} in the queue` : ""}.` : "Still running."}</span> <button type="button" onClick={cancel}>Cancel</button></>
        : problem ? <span class="bad-words">{problem.title}. {problem.detail} {problem.line !== null && <button type="button" class="as-link" onClick={() => goTo(problem.line!)}>Line {problem.line}</button>}</span>
          : run ? <span><strong class={`status-${run.status}`}>{run.status}</strong>{answer.milliseconds !== null && <>, answered in {took(answer.milliseconds)}</>}{run.outcome.wall_seconds !== null && <> (the program ran {took(run.outcome.wall_seconds * 1000)})</>}{run.isolation?.level && <>, isolation {run.isolation.level}</>}</span>
            : <span>Ctrl+Enter runs it.</span>}
    </div>
  );
}

function Sharing({ text, opened, answer }: { text: string; opened: Opened; answer: Answer | null }) {
  const [copied, setCopied] = useState<{ what: string; text: string; isCopied: boolean } | null>(null);
  const put = async (what: string, content: string) => {
    const isCopied = await navigator.clipboard?.writeText(content).then(() => true, () => false) ?? false;
    setCopied({ what, text: content, isCopied });
  };
  const isSame = answer !== null && answer.ran === text && answer.run.snippet !== null;
  const link = isSame ? `${location.origin}/play/${answer.run.snippet}?run=${answer.run.id}` : "";
  const share = async () => {
    if (link) return put("the link", link);
    try {
      const kept = await request<{ id: string }>("/v1/snippets", "POST", { files: filesOf(text, opened), entry: opened.entry ?? "snippet.py" });
      await put("the link", `${location.origin}/play/${kept.id}`);
    } catch (failed) {
      const { title, detail } = failed as Problem;
      setCopied({ what: "", text: `${title}. ${detail}`, isCopied: false });
    }
  };
  return (
    <div class="play-share">
      <div class="play-buttons"><button type="button" onClick={() => void share()}>Copy link</button> <span class="no">Copy as</span> {Object.entries(COPIES).map(([name, make]) => (
        <button key={name} type="button" aria-label={`Copy as ${name}`} onClick={() => void put(name, make({ text, opened, answer, link }))}>{name}</button>))}</div>
      {copied && <div class="play-copied"><p role="status">{copied.what && (copied.isCopied ? `Copied ${copied.what}.` : "The browser does not let pages copy here; select the text below.")} <button type="button" onClick={() => setCopied(null)}>Close</button></p><pre class="program" tabIndex={0} aria-label="Copied text">{copied.text}</pre></div>}
    </div>
  );
}
