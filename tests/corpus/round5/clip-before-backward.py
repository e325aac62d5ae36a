# /// case
# title = "Gradients are clipped before they exist"
# category = "optimizer"
# kind = "clip-before-backward"
# kinds_also_ok = ["clip-without-effect"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["clip_grad_norm_", "training_step"]
# symptom = "the step uses unclipped gradients"
# symptom_check = "max(seen) > 0.5 + 1e-4"
# cause = "the clip call is in training_step, before backward"
# fix = "clip between backward and step"
# evidence = [
#     { url = "https://github.com/simchowitzlabpublic/nano-world-model/pull/22", title = "Clip gradients in configure_gradient_clipping instead of training_step" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class WorldModel(nn.Module):
    def __init__(self, obs=12, act=3, dim=32, gradient_clip_norm=0.5):
        super().__init__()
        self.gradient_clip_norm = gradient_clip_norm
        self.enc, self.dyn, self.dec = nn.Linear(obs, dim), nn.GRUCell(act, dim), nn.Linear(dim, obs)

    def rollout(self, obs, actions):
        h, frames = torch.tanh(self.enc(obs[:, 0])), []
        for t in range(actions.shape[1]):
            h = self.dyn(actions[:, t], h)
            frames.append(self.dec(h))
        return torch.stack(frames, 1)

    def training_step(self, batch):
        obs, actions = batch
        loss = F.mse_loss(self.rollout(obs, actions), obs[:, 1:]) * 50
        nn.utils.clip_grad_norm_(self.parameters(), self.gradient_clip_norm)  #- here
        return loss

    def configure_gradient_clipping(self):
        pass  # done in training_step  #- also
#+         nn.utils.clip_grad_norm_(self.parameters(), self.gradient_clip_norm)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-3)


def fit(module, batches):
    optimizer, norms = module.configure_optimizers(), []
    for batch in batches:
        loss = module.training_step(batch)
        optimizer.zero_grad()
        loss.backward()
        module.configure_gradient_clipping()
        norms.append(torch.stack([p.grad.norm() for p in module.parameters()]).norm().item())
        optimizer.step()  #! also
    return norms


torch.manual_seed(44)
seen = fit(WorldModel(), [(torch.randn(6, 9, 12), torch.randn(6, 8, 3)) for _ in range(5)])
print(seen)
