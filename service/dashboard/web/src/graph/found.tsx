// Nodes that a word was found in, also those inside of closed boxes: each opens what it lies in.
import { useEffect, useState } from "preact/hooks";
import { Failed, useAnswer } from "../pane";
import { counted, cut } from "../words";
import type { Match, View } from "./wire";

export function Found({ base, path, word, open }: { base: string; path: string; word: string; open: (match: Match) => void }) {
  const [asked, setAsked] = useState<string | null>(null);
  useEffect(() => { // who types asks for nothing yet
    const timer = setTimeout(() => setAsked(word), 300);
    return () => clearTimeout(timer);
  }, [word]);
  const { value, problem, again } = useAnswer<View>(base, asked === null ? null : `${path}&find=${encodeURIComponent(asked.slice(0, 100))}`);
  if (problem) return <Failed problem={problem} again={again} />;
  if (!value) return <p class="said-below">Looking into closed boxes.</p>;
  const inside = value.matches.filter((match) => match.open.length);
  if (!inside.length) return <p class="said-below" role="status">{counted(value.match_count, "node")} found, none of them in a closed box.</p>;
  return (
    <div class="found">
      <p role="status">{counted(value.match_count, "node")} found{value.match_count > value.matches.length ? `, the first ${value.matches.length} of them` : ""}; one of a closed box opens it:</p>
      <ul>{inside.map((match) => <li key={match.node}><button type="button" onClick={() => open(match)}>{cut(match.label, 70)}{match.line === null ? "" : `, line ${match.line}`}</button></li>)}</ul>
    </div>
  );
}
