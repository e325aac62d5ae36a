# /// case
# title = "A parameter is wrapped as nn.Parameter anew in each forward pass"
# category = "leaf"
# kind = "parameter-created-in-forward"
# kinds_also_ok = ["graph-break", "parameter-without-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["gates", "mix"]
# symptom = "the gate logits never receive a gradient"
# symptom_check = "model.gates.grad is None"
# cause = "nn.Parameter of a computed tensor is a new leaf"
# fix = "use the computed tensor"
# ///
import torch
import torch.nn as nn


class GatedEnsemble(nn.Module):
    def __init__(self, members, dim):
        super().__init__()
        self.members = nn.ModuleList([nn.Linear(dim, 1) for _ in range(members)])
        self.gates = nn.Parameter(torch.zeros(members))

    def forward(self, x):
        mix = nn.Parameter(torch.softmax(self.gates, dim=0))  #- here
#+         mix = torch.softmax(self.gates, dim=0)
        outputs = torch.cat([m(x) for m in self.members], dim=1)
        return outputs @ mix  #! also


torch.manual_seed(40)
x = torch.randn(64, 5)
y = x[:, 0] * 2 - x[:, 3]
model = GatedEnsemble(4, 5)
optimizer = torch.optim.SGD(
    [
        {"params": model.members.parameters(), "lr": 0.05},
        {"params": [model.gates], "lr": 0.5},
    ]
)
losses = []
for epoch in range(10):
    optimizer.zero_grad()
    loss = nn.functional.huber_loss(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[0], losses[-1], model.gates.tolist())
