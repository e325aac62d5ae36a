# /// case
# title = "The straight-through lookup also sends the reconstruction's gradient to the codebook"
# category = "function"
# kind = "other-loss-gradient"
# kinds_also_ok = ["wrong-custom-backward"]
# severity = "warning"
# names = ["VQStraightThrough", "grad_codebook"]
# symptom = "the reconstruction moves the codes"
# symptom_check = "rec_reach is not None and rec_reach.abs().max().item() > 0"
# cause = "backward returns a gradient for the codebook"
# fix = "return None for it"
# evidence = [
#     { url = "https://github.com/ritheshkumar95/pytorch-vqvae/issues/7", title = "Bug in VQ function?" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Function


def nearest(inputs, codebook):
    return torch.cdist(inputs, codebook).argmin(1)


class VQStraightThrough(Function):
    @staticmethod
    def forward(ctx, inputs, codebook):
        indices = nearest(inputs, codebook)
        ctx.save_for_backward(indices, codebook)
        ctx.mark_non_differentiable(indices)
        return codebook.index_select(0, indices), indices

    @staticmethod
    def backward(ctx, grad_output, grad_indices):
        grad_inputs = grad_output.clone() if ctx.needs_input_grad[0] else None
        grad_codebook = None
        if ctx.needs_input_grad[1]:  #- here
            indices, codebook = ctx.saved_tensors  #-
            grad_codebook = torch.zeros_like(codebook).index_add_(0, indices, grad_output)  #- here
        return grad_inputs, grad_codebook


class VQVAE(nn.Module):
    def __init__(self, n=14, dim=6, K=12):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(n, 24), nn.ReLU(), nn.Linear(24, dim))
        self.codebook = nn.Embedding(K, dim)
        self.decoder = nn.Sequential(nn.Linear(dim, 24), nn.ReLU(), nn.Linear(24, n))

    def forward(self, x):
        z_e = self.encoder(x)
        z_q_st, indices = VQStraightThrough.apply(z_e, self.codebook.weight)  #! also
        return self.decoder(z_q_st), z_e, self.codebook(indices)


torch.manual_seed(71)
model, beta = VQVAE(), 1.0
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for it in range(10):
    x = torch.randn(32, 14)
    x_tilde, z_e, z_q = model(x)
    loss_recons = F.mse_loss(x_tilde, x)
    loss_vq = F.mse_loss(z_q, z_e.detach())
    loss_commit = F.mse_loss(z_e, z_q.detach())
    rec_reach = torch.autograd.grad(loss_recons, model.codebook.weight, retain_graph=True, allow_unused=True)[0]
    optimizer.zero_grad()
    (loss_recons + loss_vq + beta * loss_commit).backward()
    optimizer.step()
print(loss_recons.item(), loss_vq.item())
