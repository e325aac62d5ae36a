// What a cell stands for: each finding's message and line, and the way to the run that has it.
import { Failed, useAnswer } from "../pane";
import { Prose } from "../prose";
import { counted, visible } from "../words";
import { LevelMark } from "./marks";
import { nameOf } from "./matrix";
import type { FoundPage, Row } from "./wire";

const MOST = 100;

export function CellFindings({ row, rule }: { row: Row; rule: string }) {
  const path = row.run && row.findings[rule] ? `${row.run}/findings?rule=${encodeURIComponent(rule)}&suppressed=false&limit=${MOST}` : null;
  const { value, problem, again } = useAnswer<FoundPage>("/v1/runs", path);
  if (problem) return <Failed problem={problem} again={again} />;
  const found = path === null ? [] : value?.items ?? [];
  return (
    <div class="matrix-said" role="status" aria-label="Findings of the cell">
      <h3>{visible(rule)} in {nameOf(row)}</h3>
      {row.known[rule] ? <p class="calm">The baseline has {row.known[rule]} of them.</p> : null}
      {path === null ? <p class="calm">{wordsOf(row, rule)}</p> : !value ? <p class="calm">Asking for the findings.</p> : (
        <ul>{found.map((finding) => (
          <li key={finding.id}>
            <p><LevelMark level={finding.level} /> {finding.level} at <a class="mono" href={`/runs/${row.run}#finding-${finding.id}`}>{visible(finding.location.path)}:{finding.location.region.start_line}</a></p>
            {finding.message.split("\n").filter((line) => line.trim()).map((line, k) => <p key={k}><Prose text={line} /></p>)}
          </li>
        ))}</ul>
      )}
      <p>{row.run && <a href={`/runs/${row.run}`}>The page of the run</a>}{value?.next_cursor && ` has the others: these are ${counted(found.length, "finding")}`}{row.run && ", "}<a href={`/rules/${encodeURIComponent(rule)}`}>the manual of the rule</a></p>
    </div>
  );
}

function wordsOf(row: Row, rule: string): string {
  if (row.verdict === null) return "The run of this program has not ended.";
  if (row.states[rule] === "not-run") return "The rule lacked a fact of this run: it was not run, which is no pass.";
  if (row.judged && row.verdict === "error") return "The program failed. The rule found nothing in the part that ran.";
  return row.judged ? "The rule passed." : "The program was not judged: see its run, or why it was refused.";
}
