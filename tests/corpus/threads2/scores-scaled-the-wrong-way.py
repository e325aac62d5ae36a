# /// case
# title = "Attention scores are divided by the inverse root of the width"
# category = "scale"
# kind = "saturated-activation"
# kinds_also_ok = ["vanishing-gradient"]
# severity = "warning"
# names = ["scale", "scores", "softmax"]
# symptom = "nearly all weights are 0 or 1, so their softmax passes no gradient"
# symptom_check = "share > 0.7"
# cause = "the scale is already the inverse of the root: the scores are 64 times too large"
# fix = "multiply by it"
# evidence = [
#     { url = "https://github.com/esceptico/perceiver-io/issues/9", title = "Bug in MultiHeadAttention" },
#     { url = "https://github.com/NVIDIA/Megatron-LM/pull/848", title = "[BUG] wrong scale softmax for local transformer implement" },
# ]
# ///
import torch
import torch.nn as nn


class PointerAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q, self.k = nn.Linear(dim, dim, bias=False), nn.Linear(dim, dim, bias=False)
        nn.init.orthogonal_(self.q.weight)
        nn.init.orthogonal_(self.k.weight)
        self.scale = dim**-0.5

    def forward(self, query, keys):
        scores = torch.einsum("bd,bnd->bn", self.q(query), self.k(keys)) / self.scale  #- here
#+         scores = torch.einsum("bd,bnd->bn", self.q(query), self.k(keys)) * self.scale
        return torch.softmax(scores, -1)  #! also


class Retriever(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(16, dim), nn.LayerNorm(dim))
        self.attn = PointerAttention(dim)
        self.value = nn.Linear(16, 4)

    def forward(self, question, memory):
        weights = self.attn(self.encode(question), self.encode(memory))
        return torch.einsum("bn,bnv->bv", weights, self.value(memory)), weights


torch.manual_seed(103)
model = Retriever()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(6):
    memory = torch.randn(24, 10, 16)
    answer = torch.randint(0, 10, (24,))
    chosen = memory[torch.arange(24), answer]
    out, weights = model(chosen + 0.5 * torch.randn(24, 16), memory)
    loss = nn.functional.cross_entropy(out, chosen[:, :4].argmax(1))
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
share = (weights.max(-1).values > 0.999).float().mean().item()
print(loss.item(), share)
