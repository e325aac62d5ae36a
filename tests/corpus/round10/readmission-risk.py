# /// case
# title = "The task heads live in a plain dict and are no parameters of the model"
# category = "optimizer"
# kind = "unregistered-submodules"
# kinds_also_ok = ["modules-in-plain-dict", "parameters-missing-from-optimizer", "heads-not-registered"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["heads", "ModuleDict"]
# symptom = "the heads keep their random weights and are missing in the checkpoint"
# symptom_check = "not any(name.startswith('heads') for name in network.state_dict())"
# cause = "nn.Module registers modules only as attributes or in its containers, not those in a dict."
# fix = "nn.ModuleDict"
# ///
import torch
from torch import nn


class HospitalNet(nn.Module):
    def __init__(self, numeric, codes, hidden, outputs):
        super().__init__()
        self.code = nn.EmbeddingBag(codes, hidden, mode="mean")
        self.numeric = nn.Linear(numeric, hidden)
        self.mix = nn.Sequential(nn.LayerNorm(hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU())
        self.heads = {name: nn.Linear(hidden, size) for name, size in outputs.items()}  #- here
#+         self.heads = nn.ModuleDict({name: nn.Linear(hidden, size) for name, size in outputs.items()})

    def forward(self, numeric, codes):
        shared = self.mix(self.numeric(numeric) + self.code(codes))
        return {name: head(shared) for name, head in self.heads.items()}


def stays(n, numeric=8, codes=30):
    x = torch.randn(n, numeric)
    c = torch.randint(0, codes, (n, 5))
    severity = x[:, 0] + (c < 6).float().sum(1) - 1
    return {
        "numeric": x,
        "codes": c,
        "readmitted": (severity + 0.2 * torch.randn(n) > 0).long(),
        "days": severity.abs() + 1,
        "ward": x[:, 1:5].argmax(1),
    }


def objective(out, batch):
    return (
        nn.functional.cross_entropy(out["readmitted"], batch["readmitted"])
        + nn.functional.cross_entropy(out["ward"], batch["ward"])
        + 0.5 * nn.functional.huber_loss(out["days"].squeeze(-1), batch["days"])
    )


torch.manual_seed(27)
table = stays(400)
network = HospitalNet(8, 30, 32, {"readmitted": 2, "ward": 4, "days": 1})
optimizer = torch.optim.RMSprop(network.parameters(), lr=2e-3)  #! also

trace = []
for epoch in range(8):
    order = torch.randperm(400)
    for start in range(0, 400, 80):
        pick = order[start:start + 80]
        batch = {key: column[pick] for key, column in table.items()}
        loss = objective(network(batch["numeric"], batch["codes"]), batch)
        network.zero_grad()
        loss.backward()
        optimizer.step()
        trace.append(loss.item())
    print(epoch, round(sum(trace[-5:]) / 5, 4))
