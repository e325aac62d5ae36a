# /// case
# title = "Parameters kept in nested dictionaries"
# category = "optimizer-time"
# kind = "tensor-not-registered"
# kinds_also_ok = ["parameters-not-in-optimizer", "module-not-registered", "unregistered-parameters"]
# severity = "warning"
# names = ["waggrs", "relations"]
# symptom = "the per-relation weights have gradients and never move"
# symptom_check = 'torch.equal(model.waggrs[0]["w"], start)'
# cause = "a dict does not register parameters"
# fix = "nn.ParameterDict inside nn.ModuleList"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/632", title = "parameters not registered in module" },
# ]
# ///
import torch
import torch.nn as nn


class RelationalModel(nn.Module):
    def __init__(self, relations=3, dim=6):
        super().__init__()
        self.waggrs = {}  #-
        for rel in range(relations):  #-
            self.waggrs[rel] = {"w": nn.Parameter(1 + 0.1 * torch.randn(dim)), "b": nn.Parameter(torch.zeros(dim))}  #- here
#+         self.waggrs = nn.ModuleList(
#+             nn.ParameterDict({"w": 1 + 0.1 * torch.randn(dim), "b": torch.zeros(dim)}) for _ in range(relations)
#+         )
        self.mix = nn.Linear(dim, dim)

    def forward(self, x, rel):
        chosen = self.waggrs[rel]
        return self.mix(torch.tanh(x * chosen["w"] + chosen["b"]))  #! also


torch.manual_seed(8)
model = RelationalModel()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)  #! also
start = model.waggrs[0]["w"].detach().clone()
for step in range(9):
    x = torch.randn(16, 6)
    loss = nn.functional.mse_loss(model(x, step % 3), x.roll(1, 1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
