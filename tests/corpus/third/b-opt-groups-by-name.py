# /// case
# title = "Parameter groups by name leave out cls token, positions and layer scale"
# category = "optimizer-wiring"
# kind = "parameters-not-in-optimizer"
# severity = "warning"
# severity_by_writer = "error"
# names = ["cls_token", "pos_embed", "gamma"]
# difficulty = "hard"
# symptom = "Everything seems to train; cls_token, pos_embed and the layer-scale gammas never change."
# symptom_check = "not any(p is model.cls_token for g in optimizer.param_groups for p in g['params'])"
# cause = "The groups take names that end in 'weight' or 'bias'; bare parameters (cls_token, pos_embed, gamma) match neither and are in no group."
# fix = "Make the second group the complement of the first."
# evidence = [{ url = "https://github.com/facebookresearch/mmf/issues/104" }, { url = "https://github.com/zjunlp/HVPNeT/issues/5" }]
# ///
"""Mini vision transformer with layer scale; weight decay only on matrices."""
import torch
import torch.nn.functional as F
from torch import nn


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.heads = heads
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.fc1, self.fc2 = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)
        self.gamma1, self.gamma2 = nn.Parameter(0.1 * torch.ones(dim)), nn.Parameter(0.1 * torch.ones(dim))

    def attend(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v)
        return self.proj(y.transpose(1, 2).reshape(b, n, d))

    def forward(self, x):
        x = x + self.gamma1 * self.attend(self.norm1(x))
        return x + self.gamma2 * self.fc2(F.gelu(self.fc1(self.norm2(x))))


class MiniViT(nn.Module):
    def __init__(self, size=8, patch=4, dim=24, depth=2, classes=4):
        super().__init__()
        n = (size // patch) ** 2
        self.patch = nn.Conv2d(1, dim, patch, stride=patch)
        self.cls_token = nn.Parameter(0.02 * torch.randn(1, 1, dim))
        self.pos_embed = nn.Parameter(0.02 * torch.randn(1, n + 1, dim))
        self.layers = nn.ModuleList(Layer(dim, 2) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, img):
        x = self.patch(img).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1) + self.pos_embed
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x[:, 0]))


def param_groups(model, weight_decay):  #! also
    decay, no_decay = [], []
    for name, p in model.named_parameters():  #! here
        if name.endswith("weight") and p.ndim > 1:
            decay.append(p)
        elif name.endswith(("weight", "bias")):  #- here
#+         else:
            no_decay.append(p)
    return [{"params": decay, "weight_decay": weight_decay}, {"params": no_decay, "weight_decay": 0.0}]  #! here


def make_data(n=96):
    y = torch.randint(0, 4, (n,))
    x = 0.2 * torch.randn(n, 1, 8, 8)
    for i, c in enumerate(y.tolist()):
        x[i, :, 4 * (c // 2) : 4 * (c // 2) + 4, 4 * (c % 2) : 4 * (c % 2) + 4] += 1
    return x, y


torch.manual_seed(0)
model = MiniViT()
optimizer = torch.optim.AdamW(param_groups(model, 0.05), lr=2e-3)  #! here
x, y = make_data()
losses = []
for epoch in range(6):
    for xb, yb in zip(x.split(32), y.split(32)):
        loss = F.cross_entropy(model(xb), yb)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print(losses[0], losses[-1])
