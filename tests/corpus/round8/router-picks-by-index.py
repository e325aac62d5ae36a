# /// case
# title = "The gate of a mixture of experts only picks the index of the expert"
# category = "graph-break"
# kind = "router-without-gradient"
# kinds_also_ok = ["non-differentiable-op", "argmax-cuts-graph"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["router", "argmax", "gate"]
# symptom = "the router has no gradient"
# symptom_check = "moe.router.weight.grad is None"
# cause = "The expert's output is not multiplied with the gate's probability, and the argmax alone carries no gradient to the router."
# fix = "scale the output with the probability of the expert that was chosen"
# ///
import torch
import torch.nn as nn


class Experts(nn.Module):
    def __init__(self, width: int, count: int) -> None:
        super().__init__()
        self.router = nn.Linear(width, count, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width)) for _ in range(count)
        )
        self.register_buffer("load", torch.zeros(count))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        gate = self.router(tokens).softmax(dim=-1)  #! also
        choice = gate.argmax(dim=-1)  #- here
#+         weight, choice = gate.max(dim=-1)
        output = torch.zeros_like(tokens)
        for index, expert in enumerate(self.experts):
            rows = (choice == index).nonzero().squeeze(1)
            if len(rows):
                output = output.index_add(0, rows, expert(tokens[rows]))  #- here
#+                 output = output.index_add(0, rows, weight[rows, None] * expert(tokens[rows]))
            self.load[index] += len(rows)
        return tokens + output


torch.manual_seed(87)
embed = nn.Embedding(30, 12)
moe = Experts(12, 3)
head = nn.Linear(12, 30)
parameters = [*embed.parameters(), *moe.parameters(), *head.parameters()]
optimizer = torch.optim.Adam(parameters, lr=4e-3)
corpus = torch.randint(0, 30, (400,)).sort().values
for step in range(14):
    at = torch.randint(0, 399, (48,))
    logits = head(moe(embed(corpus[at])))
    loss = nn.functional.cross_entropy(logits, corpus[at + 1])
    for parameter in parameters:
        parameter.grad = None
    loss.backward()
    optimizer.step()
print(loss.item(), (moe.load / moe.load.sum()).tolist())
