# /// case
# title = "Spectral projection through .data inside forward, after the weight was used"
# category = "in-place"
# kind = "silent-inplace-through-data"
# severity = "warning"
# severity_by_writer = "error"
# names = ["weight", "data", "div_", "LipschitzLinear"]
# difficulty = "hard"
# symptom = "the gradient with respect to the layer input is computed with a different weight than the forward pass used; no message"
# symptom_check = "(lambda lay: (lay.weight.data.mul_(50.0), (lambda w0, x: not torch.allclose(torch.autograd.grad(lay(x).sum(), x)[0][0], w0.sum(0), rtol=1e-3))(lay.weight.detach().clone(), torch.ones(1, lay.weight.shape[1], requires_grad=True)))[1])(__import__(\"copy\").deepcopy(critic[0]))"
# cause = ".data bypasses the version counter; the weight saved for backward is rescaled between forward and backward"
# fix = "project the weights once after the optimizer step"
# evidence = [{ url = "https://github.com/meta-pytorch/torchrec/pull/2836" }, { url = "https://pytorch.org/docs/stable/notes/autograd.html#in-place-correctness-checks" }]
# ///
"""Wasserstein critic with a hard Lipschitz projection of every layer."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class LipschitzLinear(nn.Linear):
    def __init__(self, fan_in, fan_out, limit=1.0, bias=True):
        super().__init__(fan_in, fan_out, bias=bias)
        self.limit = limit

    def project(self):
        sigma = torch.linalg.matrix_norm(self.weight.detach(), ord=2)
        self.weight.data.div_((sigma / self.limit).clamp(min=1.0))  #! here

    def forward(self, x):
        out = F.linear(x, self.weight, self.bias)  #- also
        if self.training:  #- also
            self.project()  #- here
        return out  #-
#+         return F.linear(x, self.weight, self.bias)


def make_critic(width=32):
    return nn.Sequential(LipschitzLinear(2, width), nn.ReLU(), LipschitzLinear(width, width), nn.ReLU(), LipschitzLinear(width, 1, bias=False))


def spiral(n):
    t = torch.rand(n) * 6
    return torch.stack([t * t.cos(), t * t.sin()], dim=1) / 6 + 0.02 * torch.randn(n, 2)


torch.manual_seed(0)
critic = make_critic()
generator = nn.Sequential(nn.Linear(3, 48), nn.ReLU(), nn.Linear(48, 2))
c_opt = torch.optim.RMSprop(critic.parameters(), lr=5e-3)
g_opt = torch.optim.RMSprop(generator.parameters(), lr=1e-3)

for it in range(15):
    for _ in range(2):
        with torch.no_grad():
            fake = generator(torch.randn(64, 3))
        c_loss = critic(fake).mean() - critic(spiral(64)).mean()
        c_opt.zero_grad()
        c_loss.backward()
        c_opt.step()
#+         for layer in critic:
#+             if isinstance(layer, LipschitzLinear):
#+                 layer.project()
    g_loss = -critic(generator(torch.randn(64, 3))).mean()
    g_opt.zero_grad()
    g_loss.backward()
    g_opt.step()
print(f"critic {c_loss.item():.4f} generator {g_loss.item():.4f}")
