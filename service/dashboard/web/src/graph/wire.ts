// What `GET /v1/runs/{run}/graph` answers, as far as it is drawn.

export interface Box {
  id: string; kind: "leaf" | "leaf-no-grad" | "non-leaf" | "node" | "call" | "fold";
  label: string; detail: string; title: string; state: "held" | "freed" | "nothing" | "leaf";
  line: number | null; tensor: number | null; grad: string | null; retains_grad: boolean; is_root: boolean;
  nodes: number; held_nodes: number; freed_nodes: number; held_bytes: number; times: number;
  instances: number[]; noted: number[]; module_call: number | null; findings: Record<string, number>;
}
export interface Edge { start: string; end: string; wanted: boolean; count: number }
export interface View {
  boxes: Box[]; edges: Edge[]; call: number | null; depth: number; most_depth: number; nodes: number;
  hidden: Record<string, number>; truncated: boolean;
}
