# /// case
# title = "Classifier guidance takes a gradient inside a sampler decorated with no_grad"
# category = "graph-break"
# kind = "forward-under-no-grad"
# severity = "error"
# names = ["guidance", "no_grad", "x_in", "sample"]
# difficulty = "medium"
# symptom = "RuntimeError in autograd.grad: element 0 of tensors does not require grad"
# raises = "RuntimeError"
# raises_message = "does not require grad and does not have a grad_fn"
# cause = "the sampler disables gradient tracking, and the guidance step runs its classifier within it"
# fix = "enable gradients for the guidance computation"
# evidence = [{ url = "https://github.com/Trusted-AI/adversarial-robustness-toolbox/issues/498" }, { url = "https://github.com/BorealisAI/advertorch/issues/79" }, { url = "https://github.com/locuslab/convex_adversarial/issues/34" }]
# ///
"""Toy diffusion model on 2-d points with classifier guidance at sampling time."""
import torch
import torch.nn as nn
import torch.nn.functional as F

T = 20
betas = torch.linspace(1e-3, 0.2, T)
alphas = 1 - betas
bars = torch.cumprod(alphas, dim=0)


class Denoiser(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.time = nn.Embedding(T, 8)
        self.net = nn.Sequential(nn.Linear(10, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, 2))

    def forward(self, x, t):
        return self.net(torch.cat([x, self.time(t)], dim=-1))


class NoisyClassifier(nn.Module):
    def __init__(self, classes=2):
        super().__init__()
        self.time = nn.Embedding(T, 4)
        self.net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, classes))

    def forward(self, x, t):
        return self.net(torch.cat([x, self.time(t)], dim=-1))


def data(n):
    y = torch.randint(0, 2, (n,))
    return torch.randn(n, 2) * 0.2 + (y.float()[:, None] * 4 - 2), y


def noised(x, t):
    eps = torch.randn_like(x)
    return bars[t].sqrt()[:, None] * x + (1 - bars[t]).sqrt()[:, None] * eps, eps


def guidance(classifier, x, t, y, scale):
    x_in = x.detach().requires_grad_(True)  #- here
    logp = F.log_softmax(classifier(x_in, t), dim=-1)  #- here
    picked = logp.gather(1, y[:, None]).sum()  #- also
    return scale * torch.autograd.grad(picked, x_in)[0]  #- here
#+     with torch.enable_grad():
#+         x_in = x.detach().requires_grad_(True)
#+         logp = F.log_softmax(classifier(x_in, t), dim=-1)
#+         picked = logp.gather(1, y[:, None]).sum()
#+         return scale * torch.autograd.grad(picked, x_in)[0]


@torch.no_grad()  #! here
def sample(denoiser, classifier, y, scale=1.5):  #! also
    x = torch.randn(len(y), 2)
    for i in reversed(range(T)):
        t = torch.full((len(y),), i)
        eps = denoiser(x, t)
        eps = eps - (1 - bars[i]).sqrt() * guidance(classifier, x, t, y, scale)  #! also
        x = (x - betas[i] / (1 - bars[i]).sqrt() * eps) / alphas[i].sqrt()
        if i:
            x = x + betas[i].sqrt() * torch.randn_like(x)
    return x


torch.manual_seed(0)
denoiser, classifier = Denoiser(), NoisyClassifier()
opt = torch.optim.Adam([*denoiser.parameters(), *classifier.parameters()], lr=5e-3)
for step in range(40):
    x0, y = data(64)
    t = torch.randint(0, T, (64,))
    xt, eps = noised(x0, t)
    loss = F.mse_loss(denoiser(xt, t), eps) + F.cross_entropy(classifier(xt, t), y)
    opt.zero_grad()
    loss.backward()
    opt.step()

points = sample(denoiser, classifier, torch.tensor([0, 1] * 8))
print(points.mean(0))
