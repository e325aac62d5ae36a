# /// case
# title = "Residual as the target of the auxiliary loss is not a constant"
# category = "loss"
# kind = "missing-detach"
# kinds_also_ok = ["bootstrap-target-tracked"]
# severity = "warning"
# names = ["residual", "aux_loss", "detach"]
# symptom = "the auxiliary term pulls the main reconstruction towards what the dead latents say"
# symptom_check = "sae.residual.requires_grad"
# cause = "the residual is a target and carries its graph"
# fix = "detach it"
# evidence = [
#     { url = "https://github.com/bartbussmann/BatchTopK/issues/4", title = "aux loss should stop gradient to the residual" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class BatchTopKSAE(nn.Module):
    def __init__(self, act_size=12, dict_size=40, top_k=3, top_k_aux=6, aux_penalty=1 / 8):
        super().__init__()
        self.b_dec = nn.Parameter(torch.zeros(act_size))
        self.W_enc = nn.Parameter(torch.randn(act_size, dict_size) / act_size**0.5)
        self.W_dec = nn.Parameter(self.W_enc.detach().T.clone())
        self.top_k, self.top_k_aux, self.aux_penalty = top_k, top_k_aux, aux_penalty
        self.register_buffer("idle", torch.zeros(dict_size))

    def forward(self, x):
        acts = F.relu((x - self.b_dec) @ self.W_enc)
        flat = acts.flatten()
        top = flat.topk(self.top_k * len(x))
        acts_topk = torch.zeros_like(flat).scatter(0, top.indices, top.values).view_as(acts)
        reconstruct = acts_topk @ self.W_dec + self.b_dec
        self.idle = torch.where(acts_topk.sum(0) > 0, 0.0, self.idle + 1)
        l2_loss = (reconstruct - x).pow(2).mean()
        return l2_loss + self.auxiliary_loss(x, reconstruct, acts), acts_topk

    def auxiliary_loss(self, x, reconstruct, acts):
        dead = self.idle >= 1
        residual = x - reconstruct  #- here
#+         residual = (x - reconstruct).detach()
        self.residual = residual
        if not dead.any():
            return x.new_tensor(0.0)
        aux = acts[:, dead].topk(min(self.top_k_aux, int(dead.sum())), -1)
        acts_aux = torch.zeros_like(acts[:, dead]).scatter(-1, aux.indices, aux.values)
        return self.aux_penalty * (acts_aux @ self.W_dec[dead] - residual).pow(2).mean()  #! here


torch.manual_seed(132)
sae = BatchTopKSAE()
optimizer = torch.optim.Adam(sae.parameters(), lr=3e-3, betas=(0.9, 0.99))
for i in range(6):
    loss, acts = sae(torch.randn(24, 12))
    optimizer.zero_grad()
    loss.backward()
    sae.W_dec.grad -= (sae.W_dec.grad * sae.W_dec.detach()).sum(-1, keepdim=True) * sae.W_dec.detach()
    optimizer.step()
    sae.W_dec.data = F.normalize(sae.W_dec.data, dim=-1)
print(loss.item())
