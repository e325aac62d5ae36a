# /// case
# title = "Attention weights are zeroed in place after the softmax"
# category = "in-place"
# kind = "inplace-modified-saved-tensor"
# severity = "error"
# names = ["att", "masked_fill_", "softmax"]
# difficulty = "easy"
# symptom = "RuntimeError in backward: output 0 of SoftmaxBackward0 is at version 1"
# raises = "RuntimeError"
# raises_message = "modified by an inplace operation"
# cause = "softmax saves its output; masked_fill_ changes it"
# fix = "mask the scores before the softmax"
# evidence = [{ url = "https://discuss.pytorch.org/t/encounter-the-runtimeerror-one-of-the-variables-needed-for-gradient-computation-has-been-modified-by-an-inplace-operation/836" }, { url = "https://github.com/pytorch/pytorch/issues/39141" }]
# ///
"""Pooling attention over padded sets."""
import torch
from torch import nn


class SetPool(nn.Module):
    def __init__(self, dim, heads=2):
        super().__init__()
        self.query = nn.Parameter(torch.randn(heads, dim) * 0.2)
        self.value = nn.Linear(dim, dim)
        self.out = nn.Linear(heads * dim, 1)

    def forward(self, items, pad):
        score = torch.einsum("bnd,hd->bhn", items, self.query)
#+         score = score.masked_fill(pad[:, None, :], float("-inf"))
        att = torch.softmax(score, dim=-1)  #! also
        att.masked_fill_(pad[:, None, :], 0.0)  #- here
        pooled = torch.einsum("bhn,bnd->bhd", att, self.value(items))
        return self.out(pooled.flatten(1)).squeeze(1)


def padded_sets(n, longest=7, dim=8):
    length = torch.randint(2, longest + 1, (n,))
    pad = torch.arange(longest)[None] >= length[:, None]
    items = torch.randn(n, longest, dim).masked_fill(pad[..., None], 0.0)
    return items, pad, items[..., 0].amax(dim=1)


torch.manual_seed(0)
model = nn.ModuleDict({"embed": nn.Linear(8, 16), "pool": SetPool(16)})
opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(20):
    items, pad, target = padded_sets(32)
    pred = model["pool"](torch.tanh(model["embed"](items)), pad)
    loss = (pred - target).abs().mean()
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()
print(round(loss.item(), 3))
