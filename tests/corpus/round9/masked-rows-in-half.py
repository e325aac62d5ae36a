# /// case
# title = "Gradients are clipped while they still carry the factor of the GradScaler"
# category = "optimizer"
# kind = "clip-before-unscale"
# kinds_also_ok = ["clipping-scaled-gradients", "missing-unscale", "clip-at-the-wrong-place"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["clip_grad_norm_", "unscale_", "scaler"]
# symptom = "the gradients that reach the step have a norm of at most one sixteen-thousandth; nothing is learned"
# symptom_check = "torch.stack([p.grad.norm() for p in model.parameters()]).norm().item() < 1e-3"
# cause = "The clipping sees gradients that are 16384 times too large and cuts them to norm 1; the scaler then divides them by 16384."
# fix = "scaler.unscale_(optimizer) before clip_grad_norm_"
# ///
import torch
import torch.nn as nn
from torch.amp import GradScaler, autocast


class MaskedAutoencoder(nn.Module):
    def __init__(self, tokens=8, size=6, width=24):
        super().__init__()
        self.embed = nn.Linear(size, width)
        self.place = nn.Parameter(0.02 * torch.randn(tokens, width))
        self.mask = nn.Parameter(torch.zeros(width))
        self.mixer = nn.TransformerEncoderLayer(width, 2, 48, dropout=0.0, batch_first=True)
        self.restore = nn.Linear(width, size)

    def forward(self, x, hidden):
        h = torch.where(hidden.unsqueeze(-1), self.mask, self.embed(x)) + self.place
        return self.restore(self.mixer(h))


def random_mask(batch, tokens, share=0.5):
    return torch.rand(batch, tokens) < share


def masked_error(output, x, hidden):
    error = (output.float() - x).square().mean(-1)
    return (error * hidden).sum() / hidden.sum().clamp(min=1)


def walk(batch, tokens=8, size=6):
    return torch.randn(batch, tokens, size).mul(0.5).cumsum(1)


def train(model, steps=15, max_norm=1.0):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scaler = GradScaler("cpu", init_scale=2.0 ** 14)
    for step in range(steps):
        x = walk(32)
        hidden = random_mask(32, 8)
        with autocast("cpu", dtype=torch.float16):
            loss = masked_error(model(x, hidden), x, hidden)
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()  #! here
#+         scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)  #! here
        scaler.step(optimizer)  #! also
        scaler.update()
        print(f"{step:2d} {loss.item():.4f}")
    return optimizer


torch.manual_seed(43)
model = MaskedAutoencoder()
optimizer = train(model)
