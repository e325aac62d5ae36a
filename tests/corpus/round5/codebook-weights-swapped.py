# /// case
# title = "The commitment weight stands at the codebook's term"
# category = "loss"
# kind = "swapped-loss-terms"
# severity = "warning"
# names = ["diff", "commitment_cost", "detach"]
# symptom = "the encoder commits with weight 1, the codebook follows with 0.25"
# symptom_check = "ratio < 1"
# cause = "the two detached terms are exchanged"
# fix = "weight the term whose codes are detached"
# evidence = [
#     { url = "https://github.com/karpathy/deep-vector-quantization/issues/2", title = "According to the paper, these two summands should be exchanged, should they not?" },
# ]
# ///
import torch
import torch.nn as nn

torch.manual_seed(32)


class VQVAEQuantize(nn.Module):
    def __init__(self, hidden, n_embed=16, dim=6, commitment_cost=0.25):
        super().__init__()
        self.proj = nn.Linear(hidden, dim)
        self.embed = nn.Embedding(n_embed, dim)
        self.commitment_cost = commitment_cost

    def forward(self, z):
        z_e = self.proj(z)
        dist = z_e.square().sum(-1, keepdim=True) - 2 * z_e @ self.embed.weight.T + self.embed.weight.square().sum(-1)
        ind = dist.argmin(-1)
        z_q = self.embed(ind)
        diff = self.commitment_cost * (z_q - z_e.detach()).pow(2).mean() + (z_q.detach() - z_e).pow(2).mean()  #- here
#+         diff = (z_q - z_e.detach()).pow(2).mean() + self.commitment_cost * (z_q.detach() - z_e).pow(2).mean()
        z_st = z_e + (z_q - z_e).detach()
        return z_st, diff, z_e, z_q


class VQVAE(nn.Module):
    def __init__(self, n=18, hidden=24):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(n, hidden), nn.ReLU())
        self.quantizer = VQVAEQuantize(hidden)
        self.decoder = nn.Sequential(nn.Linear(6, hidden), nn.ReLU(), nn.Linear(hidden, n))
        self.latent_weight = 1.0

    def training_step(self, x):
        z_st, diff, self.z_e, self.z_q = self.quantizer(self.encoder(x))
        recon = (self.decoder(z_st) - x).pow(2).mean()
        self.diff = diff
        return recon + self.latent_weight * diff  #! also


model = VQVAE()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.999), weight_decay=1e-4)
for step in range(12):
    loss = model.training_step(torch.randn(24, 18))
    codes, latents = torch.autograd.grad(model.diff, [model.z_q, model.z_e], retain_graph=True)
    ratio = (codes.norm() / latents.norm()).item()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), ratio)
