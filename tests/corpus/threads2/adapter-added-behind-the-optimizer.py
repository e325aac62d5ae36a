# /// case
# title = "Adapters are added after the optimizer was made"
# category = "optimizer"
# kind = "parameters-not-in-optimizer"
# kinds_also_ok = ["parameters-replaced-after-optimizer"]
# severity = "warning"
# names = ["add_adapter", "optimizer", "adapters"]
# symptom = "adapter weights never change"
# symptom_check = 'torch.equal(start, model.layers[1].adapters["summarize"].down.weight)'
# cause = "the optimizer was given the parameters before the adapters existed"
# fix = "add the adapters first"
# evidence = [
#     { url = "https://github.com/adapter-hub/adapters/issues/260", title = "Train T5 with adapter without using Trainer Class didn't update the adapter's weight" },
# ]
# ///
import torch
import torch.nn as nn


class Adapter(nn.Module):
    def __init__(self, dim, bottleneck):
        super().__init__()
        self.down, self.up = nn.Linear(dim, bottleneck), nn.Linear(bottleneck, dim)

    def forward(self, x):
        return x + self.up(torch.relu(self.down(x)))


class EncoderLayer(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.attn = nn.MultiheadAttention(dim, 2, batch_first=True)
        self.norm = nn.LayerNorm(dim)
        self.adapters = nn.ModuleDict()

    def forward(self, x):
        x = self.norm(x + self.attn(x, x, x, need_weights=False)[0])
        for adapter in self.adapters.values():
            x = adapter(x)
        return x


class Model(nn.Module):
    def __init__(self, vocab=25, dim=8, n=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(EncoderLayer(dim) for _ in range(n))
        self.lm_head = nn.Linear(dim, vocab)

    def add_adapter(self, task, bottleneck=4):
        for layer in self.layers:
            layer.adapters[task] = Adapter(layer.norm.normalized_shape[0], bottleneck)

    def train_adapter(self, task):
        for name, p in self.named_parameters():
            p.requires_grad = f"adapters.{task}" in name or "lm_head" in name

    def forward(self, ids):
        h = self.embed(ids)
        for layer in self.layers:
            h = layer(h)
        return self.lm_head(h)


torch.manual_seed(56)
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.0)  #- here
model.add_adapter("summarize")  #! here
model.train_adapter("summarize")
#+ optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.0)
start = model.layers[1].adapters["summarize"].down.weight.detach().clone()
for step in range(4):
    ids = torch.randint(0, 25, (4, 10))
    loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flip(1).flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
