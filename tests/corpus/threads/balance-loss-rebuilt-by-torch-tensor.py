# /// case
# title = "Load-balancing loss of a mixture of experts rebuilt with torch.tensor"
# category = "partial-cut"
# kind = "graph-break-rebuild"
# kinds_also_ok = ["graph-break-new-tensor", "constant-loss-term"]
# severity = "warning"
# names = ["loads", "balance"]
# symptom = "the balance term has no grad_fn; the router is not pushed to balance"
# symptom_check = "balance.grad_fn is None"
# cause = "torch.tensor of a list of scalars copies the values"
# fix = "torch.stack keeps the graph"
# evidence = [
#     { url = "https://github.com/deepseek-ai/DeepSeek-MoE/issues/17", title = "Question about AddAuxiliaryLoss?" },
#     { url = "https://github.com/pnnl/neuromancer/issues/118", title = "get_q in BuildingEnvelope Disconnects Gradients" },
# ]
# ///
import torch
import torch.nn as nn

torch.manual_seed(1)


class MoE(nn.Module):
    def __init__(self, dim=8, experts=4):
        super().__init__()
        self.router = nn.Linear(dim, experts)
        self.experts = nn.ModuleList(nn.Linear(dim, dim) for _ in range(experts))
        self.out = nn.Linear(dim, 1)

    def forward(self, x):
        gate = self.router(x).softmax(-1)
        mixed = sum(gate[:, i : i + 1] * expert(x) for i, expert in enumerate(self.experts))
        loads = torch.tensor([gate[:, i].mean() for i in range(gate.size(1))])  #- here
#+         loads = torch.stack([gate[:, i].mean() for i in range(gate.size(1))])
        return self.out(mixed), (loads * loads).sum() * gate.size(1)


model = MoE()
opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(8):
    x = torch.randn(64, 8)
    pred, balance = model(x)
    loss = (pred - x.sum(1, keepdim=True)).pow(2).mean() + 0.01 * balance  #! also
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
print(loss.item(), balance.item())
