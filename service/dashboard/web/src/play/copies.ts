// The program as what other places take: a command, a request, a unit test, a report of a fault.
import { pythonLanguage } from "@codemirror/lang-python";
import { bodyOf } from "./sending";
import type { Answer, Opened } from "./wire";

export interface Given { text: string; opened: Opened; answer: Answer | null; link: string }

const ended = (text: string): string => (text.endsWith("\n") ? text : `${text}\n`);

/** Lines that lie in a string of several lines, from 1: they keep their beginning. */
function insideStrings(text: string): Set<number> {
  const found = new Set<number>();
  const lineAt = (position: number): number => text.slice(0, position).split("\n").length;
  pythonLanguage.parser.parse(text).iterate({ enter: (node) => {
    if (node.name !== "String" && node.name !== "FormatString") return;
    for (let line = lineAt(node.from) + 1; line <= lineAt(node.to); line += 1) found.add(line);
  } });
  return found;
}

function asTest({ text }: Given): string {
  const inside = insideStrings(text);
  const body = text.trimEnd().split("\n").map((line, at) => (line && !inside.has(at + 1) ? `    ${line}` : line)).join("\n");
  return `import backprobe\n\n\ndef program():\n${body}\n\n\ndef test_program_has_no_findings():\n    backprobe.check(program)\n`;
}

function asCommand({ text, opened }: Given): string {
  const name = opened.entry ?? "snippet.py";
  return `cat > ${name} <<'END_OF_PROGRAM'\n${ended(text)}END_OF_PROGRAM\nbackprobe run ${name}\n`;
}

function asRequest({ text, opened }: Given): string {
  const body = JSON.stringify(bodyOf(text, opened)).replaceAll("'", "'\\''");
  return `curl -s '${location.origin}/v1/runs?include=findings' \\\n  -H 'Content-Type: application/json' -H 'Prefer: wait=10' ${opened.key_line}\\\n  -d '${body}'\n`;
}

function asIssue({ text, answer, link }: Given): string {
  const run = answer?.ran === text ? answer.run : null;
  const found = (run?.included?.findings?.items ?? []).map((finding) => `* ${finding.level}, line ${finding.location.region.start_line}, \`${finding.rule.name}\` (${finding.rule.code}): ${finding.message.split("\n").join(" ")}`);
  const said = run === null ? ["This version was not run."] : found.length ? found : ["No findings."];
  const about = run === null ? [] : ["", `Status: ${run.status}${run.record.torch ? `; torch ${run.record.torch}` : ""}`];
  const fence = text.includes("```") ? "````" : "```";
  return [`${fence}python`, text.trimEnd(), fence, "", "Backprobe found:", "", ...said, ...about, ...(link ? ["", link] : []), ""].join("\n");
}

export const COPIES: Record<string, (given: Given) => string> = { CLI: asCommand, curl: asRequest, test: asTest, issue: asIssue };
