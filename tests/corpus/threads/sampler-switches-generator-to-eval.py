# /// case
# title = "Writing sample images switches the generator to eval for the rest of training"
# category = "cause"
# kind = "training-in-eval-mode"
# severity = "warning"
# names = ["sample_images", "eval"]
# symptom = "batch norm of the generator stops collecting statistics after the first samples"
# symptom_check = "int(G[1].num_batches_tracked) < 12"
# cause = "the helper that draws samples sets eval mode and leaves it"
# fix = "restore the mode"
# evidence = [
#     { url = "https://github.com/tk-rusch/coRNN/issues/1", title = "model.train() isn't called again after model.eval()" },
#     { url = "https://github.com/facebookresearch/clevr-iep/pull/22", title = "Fix potential problem for training" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(17)
G = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
D = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
opt_g = torch.optim.Adam(G.parameters(), lr=2e-4, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(D.parameters(), lr=2e-4, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
fixed = torch.randn(4, 8)


@torch.no_grad()
def sample_images():
    G.eval()  #! here
    images = G(fixed)
#+     G.train()
    return images


gallery = []
for it in range(12):
    real, z = torch.randn(16, 2) * 0.5 + 1, torch.randn(16, 8)
    fake = G(z)
    opt_d.zero_grad()
    d_loss = bce(D(real), torch.ones(16, 1)) + bce(D(fake.detach()), torch.zeros(16, 1))
    d_loss.backward()
    opt_d.step()
    opt_g.zero_grad()
    bce(D(fake), torch.ones(16, 1)).backward()  #! also
    opt_g.step()
    if it % 5 == 0:
        gallery.append(sample_images())
print(len(gallery), G[1].num_batches_tracked)
