// What `/v1/audits/AUDIT/matrix` and `/v1/runs/RUN/findings` answer, as far as the matrix shows it.

export type Level = "error" | "warning" | "note";

export interface Row {
  n: number;
  custom_id: string | null;
  run: string | null;
  verdict: string | null;
  judged: boolean;
  states: Record<string, "warn" | "fail" | "not-run">;
  findings: Record<string, number>;
  known: Record<string, number>;
  levels: Record<string, Level>;
}

export interface Matrix { audit: string; rules: string[]; items: Row[] }

export interface Found {
  id: string;
  level: Level;
  message: string;
  location: { path: string; region: { start_line: number } };
}

export interface FoundPage { items: Found[]; next_cursor: string | null }
