# /// case
# title = "Generator backward leaves gradients in the discriminator that its next step uses"
# category = "accumulation"
# kind = "missing-zero-grad"
# severity = "warning"
# severity_by_writer = "error"
# names = ["d_opt", "zero_grad", "disc", "d_step"]
# difficulty = "hard"
# symptom = "each discriminator update contains the reversed generator gradient; no message"
# symptom_check = "(lambda w0: ([setattr(p, \"grad\", torch.full_like(p, 1e6)) for p in disc.parameters()], d_step(grid(8)), float((disc[0].weight - w0).abs().max()) > 10.0)[2])(disc[0].weight.detach().clone())"
# cause = "d_opt.zero_grad() runs after d_opt.step(), but the generator's backward fills the discriminator gradients again before the next d_loss.backward()"
# fix = "clear the gradients right before d_loss.backward()"
# evidence = [{ url = "https://github.com/Lightning-AI/pytorch-lightning/issues/557" }, { url = "https://github.com/FoundationVision/OmniTokenizer/issues/15" }, { url = "https://github.com/Hsintien-Ng/idinvert_pytorch-reproduced/issues/1" }]
# ///
"""Least-squares GAN on a grid of Gaussians."""
import torch
import torch.nn as nn


def perceptron(*sizes, slope=0.2):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.LeakyReLU(slope)]
    return nn.Sequential(*layers[:-1])


def grid(n):
    centre = torch.stack([torch.randint(-1, 2, (n,)), torch.randint(-1, 2, (n,))], dim=1).float()
    return centre + 0.05 * torch.randn(n, 2)


torch.manual_seed(0)
gen, disc = perceptron(4, 48, 48, 2), perceptron(2, 48, 48, 1)
g_opt = torch.optim.SGD(gen.parameters(), lr=0.02, momentum=0.5)
d_opt = torch.optim.SGD(disc.parameters(), lr=0.02, momentum=0.5)


def d_step(real):
    with torch.no_grad():
        fake = gen(torch.randn(len(real), 4))
    d_loss = (disc(real) - 1).pow(2).mean() + disc(fake).pow(2).mean()
#+     d_opt.zero_grad()
    d_loss.backward()  #! here
    d_opt.step()  #! here
    d_opt.zero_grad()  #- here
    return d_loss.item()


def g_step(n):
    g_loss = (disc(gen(torch.randn(n, 4))) - 1).pow(2).mean()
    g_opt.zero_grad()  #! also
    g_loss.backward()  #! here
    g_opt.step()
    return g_loss.item()


for it in range(60):
    d_value = d_step(grid(64))  #! also
    g_value = g_step(64)  #! also
print(f"d {d_value:.3f} g {g_value:.3f}")
