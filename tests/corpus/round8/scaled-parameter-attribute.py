# /// case
# title = "A parameter is scaled after it was made, so that the attribute is a plain tensor"
# category = "leaf"
# kind = "parameter-not-registered"
# kinds_also_ok = ["non-leaf-attribute", "parameter-lost-by-operation"]
# severity = "error"
# names = ["nn.Parameter", "position"]
# symptom = "position is not among the parameters and backward of the second step raises"
# raises = "RuntimeError"
# raises_message = "Trying to backward through the graph a second time"
# cause = "nn.Parameter(...) * 0.02 is no Parameter but a tensor with a history that is shared by all steps."
# fix = "scale inside the constructor"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class CausalBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x, mask):
        y = self.norm1(x)
        x = x + self.attention(y, y, y, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class CharModel(nn.Module):
    def __init__(self, vocab, length, width=16, heads=2):
        super().__init__()
        self.token = nn.Embedding(vocab, width)
        self.position = nn.Parameter(torch.randn(length, width)) * 0.02  #- here
#+         self.position = nn.Parameter(torch.randn(length, width) * 0.02)
        self.block = CausalBlock(width, heads)
        self.out = nn.Linear(width, vocab)
        self.register_buffer("mask", torch.ones(length, length, dtype=torch.bool).triu(1))

    def forward(self, tokens):
        length = tokens.shape[1]
        x = self.token(tokens) + self.position[:length]  #! also
        return self.out(self.block(x, self.mask[:length, :length]))


torch.manual_seed(18)
text = "the quick brown fox jumps over the lazy dog " * 8
alphabet = sorted(set(text))
codes = torch.tensor([alphabet.index(c) for c in text])
model = CharModel(len(alphabet), length=16)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)  #! also
for step in range(12):
    start = torch.randint(0, len(codes) - 17, (8,))
    chunk = codes[start[:, None] + torch.arange(17)]
    loss = F.cross_entropy(model(chunk[:, :-1]).flatten(0, 1), chunk[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
    print(step, loss.item())
