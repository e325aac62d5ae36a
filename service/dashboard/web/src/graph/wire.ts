// What `GET /v1/runs/{run}/graph` answers, as far as it is drawn.

export interface Gradient { least: number | null; most: number | null; nonfinite: number }
export interface Parameter { name: string; grad: string; times: number; tensor: number }
export interface Box {
  id: string; kind: "leaf" | "leaf-no-grad" | "non-leaf" | "node" | "call" | "fold" | "pattern";
  label: string; detail: string; title: string; state: "held" | "freed" | "nothing" | "leaf";
  line: number | null; tensor: number | null; grad: string | null; retains_grad: boolean; is_root: boolean;
  nodes: number; held_nodes: number; freed_nodes: number; held_bytes: number; times: number;
  instances: number[]; noted: number[]; module_call: number | null; findings: Record<string, number>;
  gradient: Gradient | null; parameters: Parameter[]; more_parameters: number; parameter_count: number;
}
export interface Edge { start: string; end: string; wanted: boolean; count: number }
export interface Match { node: number; label: string; line: number | null; box: string | null; open: string[] }
export interface View {
  boxes: Box[]; edges: Edge[]; call: number | null; depth: number; most_depth: number; nodes: number;
  hidden: Record<string, number>; truncated: boolean; focus: number | null; matches: Match[]; match_count: number;
}

export const isClosed = (box: Box): boolean => box.kind === "call" || box.kind === "fold" || box.kind === "pattern";

/** The gradients that came to a box: `0.0012 to 24`, with what was NaN or Inf. */
export function rangeOf({ gradient }: Box, told: (value: number) => string): string {
  if (!gradient) return "";
  const { least, most, nonfinite } = gradient;
  const range = least === null || most === null ? "" : least === most ? told(least) : `${told(least)} to ${told(most)}`;
  return [range, nonfinite ? "NaN or Inf" : ""].filter(Boolean).join(", ");
}
