# /// case
# title = "Clearing only after the step leaves the generator's gradient in the discriminator"
# category = "other-loss"
# kind = "other-loss-in-gradient"
# kinds_also_ok = ["missing-zero-grad"]
# severity = "warning"
# names = ["disc", "zero_grad"]
# symptom = "the discriminator's gradient holds the generator's loss too"
# symptom_check = "not torch.allclose(stepped, own)"
# cause = "each optimizer clears only its own parameters, after its step"
# fix = "clear the discriminator before its backward"
# evidence = [
#     { url = "https://github.com/Lightning-AI/pytorch-lightning/issues/591", title = "GAN training with Pytorch Lightning is broken." },
#     { url = "https://github.com/Lightning-AI/pytorch-lightning/issues/557", title = "The gan template does not seem to set properly the gradients of the discriminator to zero" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(1)
gen = nn.Sequential(nn.Linear(4, 12), nn.ReLU(), nn.Linear(12, 2))
disc = nn.Sequential(nn.Linear(2, 12), nn.ReLU(), nn.Linear(12, 1))
opt_g = torch.optim.Adam(gen.parameters(), lr=1e-4)
opt_d = torch.optim.Adam(disc.parameters(), lr=1e-4)
bce = nn.functional.binary_cross_entropy_with_logits
ones, zeros = torch.ones(16, 1), torch.zeros(16, 1)

for batch in range(6):
    real = torch.randn(16, 2) + 3
    fake = gen(torch.randn(16, 4))
    g_loss = bce(disc(fake), ones)
    g_loss.backward()  #! also
    opt_g.step()
    opt_g.zero_grad()

#+     opt_d.zero_grad()
    d_loss = bce(disc(real), ones) + bce(disc(fake.detach()), zeros)
    own = torch.autograd.grad(d_loss, disc[0].weight, retain_graph=True)[0]
    d_loss.backward()  #! here
    stepped = disc[0].weight.grad.clone()
    opt_d.step()  #! here
    opt_d.zero_grad()  #! also
print(d_loss.item(), g_loss.item())
