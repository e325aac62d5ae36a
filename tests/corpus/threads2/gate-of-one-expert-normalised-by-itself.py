# /// case
# title = "Softmax over the single logit of a top-1 gate"
# category = "loss"
# kind = "single-class-softmax"
# kinds_also_ok = ["zero-gradient-op", "gradient-never-arrives"]
# severity = "warning"
# names = ["top_k_gates", "softmax", "w_gate"]
# symptom = "w_gate's gradient is zero in every step"
# symptom_check = "float(layer.moe.w_gate.grad.abs().max()) == 0.0"
# cause = "softmax of one value is always one"
# fix = "softmax over all experts before top-k"
# evidence = [
#     { url = "https://github.com/davidmrau/mixture-of-experts/issues/27", title = "Zero Grad of w_gate" },
# ]
# ///
import torch
import torch.nn as nn


class MLP(nn.Sequential):
    def __init__(self, d_in, d_out, hidden):
        super().__init__(nn.Linear(d_in, hidden), nn.ReLU(), nn.Linear(hidden, d_out))


class MoE(nn.Module):
    def __init__(self, input_size, output_size, num_experts, hidden_size, k=1):
        super().__init__()
        self.num_experts, self.k = num_experts, k
        self.experts = nn.ModuleList(MLP(input_size, output_size, hidden_size) for _ in range(num_experts))
        self.w_gate = nn.Parameter(0.1 * torch.randn(input_size, num_experts))
        self.softmax = nn.Softmax(dim=1)

    def top_k_gating(self, x):
        logits = x @ self.w_gate  #-
#+         logits = self.softmax(x @ self.w_gate)
        top_k_logits, top_k_indices = logits.topk(self.k, dim=1)
        top_k_gates = self.softmax(top_k_logits)  #- here
#+         top_k_gates = top_k_logits
        return torch.zeros_like(logits).scatter(1, top_k_indices, top_k_gates)

    def forward(self, x):
        gates = self.top_k_gating(x)
        outputs = torch.stack([expert(x) for expert in self.experts], 1)
        return (gates.unsqueeze(-1) * outputs).sum(1)


class TransformerLayer(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.attn = nn.MultiheadAttention(dim, 2, batch_first=True)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.moe = MoE(dim, dim, num_experts=4, hidden_size=16, k=1)  #! also

    def forward(self, x):
        h = self.norm1(x + self.attn(x, x, x)[0])
        return self.norm2(h + self.moe(h.flatten(0, 1)).view_as(h))


torch.manual_seed(72)
layer, head = TransformerLayer(), nn.Linear(8, 3)
optimizer = torch.optim.Adam([*layer.parameters(), *head.parameters()], lr=1e-2)
for step in range(4):
    x, y = torch.randn(6, 5, 8), torch.randint(0, 3, (6,))
    loss = nn.functional.cross_entropy(head(layer(x).mean(1)), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
