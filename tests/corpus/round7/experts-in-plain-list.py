# /// case
# title = "The experts are held in a plain list"
# category = "optimizer"
# kind = "unregistered-submodules"
# kinds_also_ok = ["parameter-not-in-optimizer", "parameter-not-registered"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["experts", "ModuleList"]
# symptom = "model.parameters() yields the router and head only, the experts are never stepped"
# symptom_check = "model.experts[0].weight not in optimizer.state"
# cause = "nn.Module does not look into lists"
# fix = "ModuleList"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class SparseMixture(nn.Module):
    def __init__(self, dim, n_experts, top=2):
        super().__init__()
        self.router = nn.Linear(dim, n_experts)
        self.experts = [nn.Linear(dim, dim) for _ in range(n_experts)]  #- here
#+         self.experts = nn.ModuleList(nn.Linear(dim, dim) for _ in range(n_experts))
        self.top = top

    def forward(self, x):
        weight, chosen = torch.topk(self.router(x).softmax(dim=-1), self.top, dim=-1)
        weight = weight / weight.sum(dim=-1, keepdim=True)
        out = torch.zeros_like(x)
        for e, expert in enumerate(self.experts):
            row, slot = torch.where(chosen == e)
            out = out.index_add(0, row, weight[row, slot].unsqueeze(1) * F.silu(expert(x[row])))
        return x + out


class Model(SparseMixture):
    def __init__(self, dim=8, classes=3):
        super().__init__(dim, n_experts=4)
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        return self.head(super().forward(x))


torch.manual_seed(68)
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)  #! also
x, y = torch.randn(48, 8), torch.randint(0, 3, (48,))
for step in range(12):
    rows = torch.randperm(48)[:16]
    loss = F.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), sum(p.numel() for p in model.parameters()))
