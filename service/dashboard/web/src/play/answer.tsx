// What a run says of the program: its lines with notes beside, findings with fixes, and what it printed.
import { LevelMark, TensorSign, wordsOf } from "./signs";
import type { Answer, Edit, Finding, Line } from "./wire";
import { Prose } from "../prose";
import { counted, visible } from "../words";

interface Shown { answer: Answer; stale: Set<number>; isEdited: boolean; goTo: (line: number) => void; apply: (edits: Edit[]) => void }

export function AnswerPanes(shown: Shown) {
  const { run, output } = shown.answer;
  const source = run.included?.source ?? null;
  return (
    <>
      <Findings {...shown} />
      {source && <Lines {...shown} lines={source.lines} path={source.path} />}
      {output && (output.stdout.tail || output.stderr.tail) && (
        <section class="pane" aria-label="Output"><header><h2>Output</h2></header><div class="inner">
          {(["stdout", "stderr"] as const).filter((name) => output[name].tail).map((name) => (
            <div key={name}><h3 class="output-of">{name}</h3><pre class="output" tabIndex={0} aria-label={name}>{visible(output[name].tail)}</pre></div>))}
        </div></section>)}
    </>
  );
}

function Findings({ answer, stale, isEdited, goTo, apply }: Shown) {
  const { run } = answer;
  const found = (run.included?.findings?.items ?? []).filter((finding) => !finding.suppressed);
  const path = run.included?.source?.path;
  return (
    <section class="pane" id="findings" aria-labelledby="findings-title">
      <header><h2 id="findings-title">Findings</h2><span class="sum">{found.length ? counted(found.length, "finding") : ""}</span><span class="more"><a href={`/runs/${run.id}`}>The whole run</a></span></header>
      {run.error?.message && run.error.whose !== "asked" && <pre class="notice bad message">{run.error.line ? `line ${run.error.line}: ` : ""}{visible(run.error.message)}</pre>}
      {found.length ? <ul class="findings">{found.map((finding) => (
        <Card key={finding.id} finding={finding} isStale={stale.has(finding.location.region.start_line) && finding.location.path === path} canEdit={!isEdited} path={path} goTo={goTo} apply={apply} />))}</ul>
        : <div class="inner calm"><p><strong>No findings.</strong> {run.findings.rules_judged ? `${counted(run.findings.rules_judged, "rule")} judged this run.` : "No rule judged this run."} <a href={`/runs/${run.id}#checks-title`}>What was checked, and what could not be</a></p></div>}
    </section>
  );
}

interface CardGiven { finding: Finding; isStale: boolean; canEdit: boolean; path: string | undefined; goTo: (line: number) => void; apply: (edits: Edit[]) => void }

function Card({ finding, isStale, canEdit, path, goTo, apply }: CardGiven) {
  const [first, ...why] = finding.message.split("\n");
  const line = finding.location.region.start_line;
  return (
    <li class={finding.level}>
      <div class="name"><LevelMark level={finding.level} /><h3>{finding.rule.name}</h3><span class="badge">{finding.level}</span><span class="badge">{finding.confidence}</span>{isStale && <span class="badge">line edited since</span>}<a href={finding.rule.url} title="The rule's manual">{finding.rule.code}</a></div>
      <p class="seen">{finding.location.path === path ? <button type="button" class="as-link" onClick={() => goTo(line)}>Line {line}</button> : `${visible(finding.location.path)}, line ${line}`}: <Prose text={first!} /></p>
      {why.map((text, at) => <p key={at} class="why"><Prose text={text} /></p>)}
      {finding.fixes.map((fix) => (
        <p key={fix.title} class="fix">Fix: <Prose text={fix.title} /> {fix.edits.length > 0 && fix.edits.every((edit) => edit.path === path) && (
          <button type="button" disabled={!canEdit} title={canEdit ? "" : "The program was edited since; run it again first"} onClick={() => apply(fix.edits)}>Put it in the program</button>)}</p>))}
    </li>
  );
}

function Lines({ lines, path, answer, stale, isEdited, goTo }: Shown & { lines: Line[]; path: string }) {
  const found = new Map((answer.run.included?.findings?.items ?? []).map((finding) => [finding.id, finding]));
  return (
    <section class="pane" aria-labelledby="lines-title">
      <header><h2 id="lines-title">What happened on each line</h2><span class="sum">{stale.size ? `${counted(stale.size, "line")} edited since this run` : isEdited ? "lines were added since this run" : "with the last state of every name"}</span></header>
      <ol class="source play-lines" tabIndex={0} aria-label={`Lines of ${visible(path)}`}>
        {lines.map((line) => {
          const on = line.findings.map((id) => found.get(id)).filter((finding): finding is Finding => finding !== undefined && !finding.suppressed);
          const level = ["error", "warning", "note"].find((name) => on.some((finding) => finding.level === name)) ?? "";
          return (
            <li key={line.line} class={`${level} ${stale.has(line.line) ? "stale" : ""}`}>
              <button type="button" class="number as-link" aria-label={`Line ${line.line} in the editor`} onClick={() => goTo(line.line)}>{line.line}</button><code class="code">{visible(line.text)}</code>
              <Notes line={line} on={on} isStale={stale.has(line.line)} run={answer.run.id} />
            </li>);
        })}
      </ol>
    </section>
  );
}

function Notes({ line, on, isStale, run }: { line: Line; on: Finding[]; isStale: boolean; run: string }) {
  const names = line.bindings.slice(0, 12);
  if (!on.length && !names.length && !line.backward_calls.length && line.passes < 2 && !isStale) return null;
  const call = line.backward_calls[line.backward_calls.length - 1];
  return (
    <ul class="notes">
      {isStale && <li>edited since</li>}
      {on.map((finding) => <li key={finding.id} class="finding"><LevelMark level={finding.level} /> <a href={finding.rule.url}>{finding.rule.code}</a> {finding.rule.name}</li>)}
      {names.map((binding) => (
        <li key={binding.name}><TensorSign of={binding} /> <a class="name" href={`/runs/${run}/tensors/${binding.tensor}`}>{visible(binding.name)}</a>{binding.times > 1 && ` \u00d7${binding.times}`} <span class="mono">{binding.shape ? `[${binding.shape.join(", ")}]` : ""}</span> {wordsOf(binding)}</li>))}
      {line.bindings.length > names.length && <li>and {counted(line.bindings.length - names.length, "more name")}</li>}
      {call !== undefined && <li><a href={`/runs/${run}?call=${call}#call-${call}`}>backward call {call + 1}</a>{line.backward_calls.length > 1 && `, and ${line.backward_calls.length - 1} before it`}</li>}
      {line.passes > 1 && <li>seen {line.passes} times</li>}
    </ul>
  );
}
