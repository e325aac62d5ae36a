# /// case
# title = "Text tower is encoded by a method decorated with no_grad"
# category = "graph-break"
# kind = "forward-under-no-grad"
# kinds_also_ok = ["parameter-without-gradient", "graph-break-detach", "grad-mode-left-off"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["encode_text", "no_grad", "text"]
# difficulty = "medium"
# symptom = "the text encoder gets no gradient; only the image tower adapts"
# symptom_check = "all(p.grad is None for p in model.text.parameters())"
# cause = "encode_text() is decorated with torch.no_grad() for retrieval and is also used by the training loss"
# fix = "do not disable gradients in the method that training uses"
# evidence = [{ url = "https://github.com/edreisMD/ConVIRT-pytorch/issues/7" }, { url = "https://github.com/TinyLLaVA/TinyLLaVA_Factory/issues/17" }]
# ///
"""Two-tower contrastive pre-training with a learned temperature."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class ImageTower(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 12, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(48, dim))

    def forward(self, x):
        return self.net(x)


class TextTower(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed = nn.EmbeddingBag(vocab, dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, ids):
        return self.proj(torch.relu(self.embed(ids)))


class TwoTower(nn.Module):
    def __init__(self, vocab=25, dim=16):
        super().__init__()
        self.image = ImageTower(dim)
        self.text = TextTower(vocab, dim)
        self.log_temp = nn.Parameter(torch.tensor(2.0))

    def encode_image(self, x):
        return F.normalize(self.image(x), dim=-1)

    @torch.no_grad()  #- here
    def encode_text(self, ids):  #! here
        return F.normalize(self.text(ids), dim=-1)  #! also

    def forward(self, x, ids):
        return self.log_temp.exp() * self.encode_image(x) @ self.encode_text(ids).t()  #! also

    @torch.no_grad()
    def retrieve(self, x, captions):
        return (self.encode_image(x) @ self.encode_text(captions).t()).argmax(dim=1)


def pairs(n):
    kind = torch.randperm(25)[:n]
    colour = torch.stack([(kind // 5) / 4.0, (kind % 5) / 4.0, torch.zeros(n)], dim=1)
    x = colour[:, :, None, None] + 0.05 * torch.randn(n, 3, 8, 8)
    return x, kind[:, None].repeat(1, 3)


torch.manual_seed(0)
model = TwoTower()
opt = torch.optim.AdamW(model.parameters(), lr=5e-3)
for step in range(30):
    x, ids = pairs(16)
    logits = model(x, ids)
    target = torch.arange(len(x))
    loss = 0.5 * (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target))
    opt.zero_grad()
    loss.backward()
    opt.step()

x, ids = pairs(16)
hits = (model.retrieve(x, ids) == torch.arange(16)).float().mean().item()
print(f"recall@1 {hits:.2f}")
