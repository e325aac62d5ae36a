# /// case
# title = "Forward pass in evaluation mode overwrites the dropout rate"
# category = "mode"
# kind = "dropout-off-after-evaluation"
# kinds_also_ok = ["training-in-eval-mode"]
# severity = "warning"
# names = ["dropout_p", "training"]
# symptom = "after the first evaluation the model trains without dropout"
# symptom_check = "model.core.dropout_p == 0.0"
# cause = "the module's setting is overwritten"
# fix = "a local value"
# evidence = [
#     { url = "https://github.com/NVIDIA/Megatron-LM/pull/411", title = "bug fix: when eval, dropout_p turns to 0 forever" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class FlashSelfAttention(nn.Module):
    def __init__(self, heads, attention_dropout=0.0):
        super().__init__()
        self.heads, self.dropout_p = heads, attention_dropout

    def forward(self, q, k, v):
        b, s, d = q.shape
        q, k, v = (t.view(b, s, self.heads, d // self.heads).transpose(1, 2) for t in (q, k, v))
        is_causal = True
        if not self.training:  #-
            self.dropout_p = 0.0  #- here
        out = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout_p, is_causal=is_causal)  #- also
#+         dropout_p = self.dropout_p if self.training else 0.0
#+         out = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout_p, is_causal=is_causal)
        return out.transpose(1, 2).reshape(b, s, d)


class GPT(nn.Module):
    def __init__(self, vocab=24, dim=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.core = FlashSelfAttention(4, attention_dropout=0.2)
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocab)

    def forward(self, ids):
        x = self.embed(ids)
        x = x + self.proj(self.core(*self.qkv(x).chunk(3, -1)))
        return self.head(self.norm(x))


def loss_of(model, ids):
    return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())


def evaluate(model, batches):
    model.eval()
    with torch.no_grad():
        value = sum(loss_of(model, ids).item() for ids in batches)
    model.train()
    return value


torch.manual_seed(83)
model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
valid = [torch.randint(0, 24, (4, 9)) for _ in range(2)]
for iteration in range(1, 7):
    optimizer.zero_grad()
    loss_of(model, torch.randint(0, 24, (4, 9))).backward()
    optimizer.step()
    if iteration % 3 == 0:
        print(evaluate(model, valid))
