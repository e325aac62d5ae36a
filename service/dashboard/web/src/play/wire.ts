// What the API answers about a run and its program, as far as the playground reads it.

export interface Binding {
  name: string; times: number; tensor: number; shape: number[] | null; is_leaf: boolean | null;
  requires_grad: boolean | null; retains_grad: boolean | null; grad: string | null; grad_norm: number | string | null;
}
export interface Line { line: number; text: string; bindings: Binding[]; passes: number; backward_calls: number[]; findings: string[] }
export interface Source { path: string; files: string[]; lines: Line[] }
export interface Region { start_line: number; start_col: number; end_line: number; end_col: number }
export interface Edit { path: string; region: Region; text: string }
export interface Fix { title: string; safety: string; edits: Edit[] }
export interface Finding {
  id: string; level: string; confidence: string; message: string; suppressed: unknown;
  rule: { code: string; name: string; url: string }; location: { path: string; region: Region; text: string }; fixes: Fix[];
}
export interface Run {
  id: string; status: string; ended: boolean; snippet: string | null; entry: string | null; queue_position: number | null;
  isolation: { level?: string } | null; outcome: { wall_seconds: number | null };
  error: { whose: string; message: string | null; line: number | null } | null; record: { torch: string | null };
  findings: { rules_judged: number | null; ruleset: string | null };
  included: { findings: { items: Finding[] } | null; source: Source | null } | null;
}
export interface Output { stdout: { tail: string; total_bytes: number }; stderr: { tail: string; total_bytes: number } }
/** What the server put into the page: the snippet that is open, and the files that go with its entry. */
export interface Opened { snippet: string | null; entry: string | null; files: Record<string, string>; key_line: string }
/** One answer: the run, what it printed, the text that ran, and how long it took from the click. */
export interface Answer { run: Run; output: Output | null; ran: string; milliseconds: number | null }
