# /// case
# title = "A top-1 mixture of experts does not multiply the expert's output by its gate"
# category = "graph-break"
# kind = "router-without-gradient"
# kinds_also_ok = ["argmax-routing-not-differentiable", "gate-not-applied", "parameter-without-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["gates", "choice", "router"]
# symptom = "the router's weight never has a gradient, the routing stays as initialised"
# symptom_check = "model.moe.router.weight.grad is None"
# cause = "The gates are used only through argmax, which has no gradient; the output is not scaled by the chosen gate."
# fix = "multiply the expert's output by gates[rows, index, None]"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Expert(nn.Sequential):
    def __init__(self, width, hidden):
        super().__init__(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))


class SwitchFeedForward(nn.Module):
    def __init__(self, width, hidden, experts):
        super().__init__()
        self.router = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(Expert(width, hidden) for _ in range(experts))
        self.usage = None

    def forward(self, x):
        tokens = x.reshape(-1, x.shape[-1])
        gates = self.router(tokens).softmax(-1)  #! also
        choice = gates.argmax(-1)  #! also
        self.usage = torch.bincount(choice, minlength=len(self.experts))
        out = torch.zeros_like(tokens)
        for index, expert in enumerate(self.experts):
            rows = torch.where(choice == index)[0]
            if len(rows):
                out = out.index_copy(0, rows, expert(tokens[rows]))  #- here
#+                 out = out.index_copy(0, rows, gates[rows, index, None] * expert(tokens[rows]))
        return out.view_as(x)  #! also


class TokenTagger(nn.Module):
    def __init__(self, vocab=50, width=16, labels=4):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.norm = nn.LayerNorm(width)
        self.moe = SwitchFeedForward(width, 32, experts=4)
        self.out = nn.Linear(width, labels)

    def forward(self, ids):
        h = self.embed(ids)
        return self.out(h + self.moe(self.norm(h)))


def train_step(model, optimizer, ids, labels):
    loss = F.cross_entropy(model(ids).flatten(0, 1), labels.flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    torch.manual_seed(21)
    model = TokenTagger()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for step in range(15):
        ids = torch.randint(0, 50, (8, 10))
        value = train_step(model, optimizer, ids, ids % 4)
    print(f"loss {value:.3f} tokens per expert {model.moe.usage.tolist()}")
