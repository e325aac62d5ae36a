# /// case
# title = "The filter object is used up by the optimizer, so that clipping sees no parameters"
# category = "optimizer"
# kind = "exhausted-parameter-iterator"
# kinds_also_ok = ["clipping-without-parameters", "generator-consumed", "empty-parameter-list", "clip-without-effect"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["params", "filter", "clip_grad_norm_"]
# symptom = "the reported norm is always 0 and nothing is clipped"
# symptom_check = "max(grad_norms) == 0.0"
# cause = "filter returns an iterator; SGD reads it to its end and clip_grad_norm_ finds it empty."
# fix = "make a list of it"
# ///
import torch
from torch import nn


class Adapter(nn.Module):
    def __init__(self, dim, bottleneck):
        super().__init__()
        self.down = nn.Linear(dim, bottleneck)
        self.up = nn.Linear(bottleneck, dim)
        nn.init.normal_(self.up.weight, std=1e-2)

    def forward(self, x):
        return x + self.up(torch.relu(self.down(x)))


class AdaptedEncoder(nn.Module):
    def __init__(self, vocab=120, dim=32, layers=2, labels=5):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(dim, 4, 64, dropout=0.0, batch_first=True) for _ in range(layers)
        )
        self.adapters = nn.ModuleList(Adapter(dim, 8) for _ in range(layers))
        self.head = nn.Linear(dim, labels)

    def forward(self, ids):
        x = self.embedding(ids)
        for layer, adapter in zip(self.layers, self.adapters):
            x = adapter(layer(x))
        return self.head(x.mean(dim=1))


def freeze_backbone(model):
    for module in (model.embedding, model.layers):
        for p in module.parameters():
            p.requires_grad = False


def get_batch(bsz=16, length=10):
    y = torch.randint(0, 5, (bsz,))
    x = torch.randint(0, 120, (bsz, length))
    x[:, :4] = y.unsqueeze(1) * 24 + torch.randint(0, 24, (bsz, 4))
    return x, y


torch.manual_seed(1234)
model = AdaptedEncoder()
freeze_backbone(model)
params = filter(lambda p: p.requires_grad, model.parameters())  #- here
#+ params = list(filter(lambda p: p.requires_grad, model.parameters()))
optimizer = torch.optim.SGD(params, lr=0.5)  #! also
loss_fn = nn.CrossEntropyLoss(label_smoothing=0.05)

grad_norms, losses = [], []
for step in range(60):
    x, y = get_batch()
    optimizer.zero_grad()
    loss = loss_fn(model(x), y)
    loss.backward()
    grad_norms.append(float(nn.utils.clip_grad_norm_(params, max_norm=0.25)))  #! also
    optimizer.step()
    losses.append(loss.item())
print("loss", sum(losses[:5]) / 5, "->", sum(losses[-5:]) / 5)
print("largest update", max(grad_norms))
