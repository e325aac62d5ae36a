# /// case
# title = "The contact's backward returns the local derivative without the incoming gradient"
# category = "function"
# kind = "backward-ignores-grad-output"
# kinds_also_ok = ["missing-grad-output", "wrong-custom-backward", "chain-rule-not-applied"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["backward", "grad_force", "Contact"]
# symptom = "the launch speeds move in wrong directions and the balls miss their marks"
# symptom_check = "losses[-1] > 0.05 * losses[0]"
# cause = "The vector-Jacobian product must multiply the derivative by grad_force; the sign and size of what follows the contact are lost."
# fix = "return -grad_force * stiffness * sigmoid(...)"
# ///
import torch
import torch.nn.functional as F


class Contact(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gap, stiffness, softness):
        ctx.save_for_backward(gap)
        ctx.stiffness, ctx.softness = stiffness, softness
        return stiffness * softness * F.softplus(-gap / softness)

    @staticmethod
    def backward(ctx, grad_force):  #! also
        (gap,) = ctx.saved_tensors
        return -ctx.stiffness * torch.sigmoid(-gap / ctx.softness), None, None  #- here
#+         return -grad_force * ctx.stiffness * torch.sigmoid(-gap / ctx.softness), None, None


def simulate(speed, steps, dt=0.02, gravity=4.0):
    height, climb = torch.full_like(speed[:, 0], 0.8), speed[:, 1]
    reached = torch.zeros_like(height)
    drift = speed[:, 0]
    for _ in range(steps):
        force = Contact.apply(height, 80.0, 0.05)  #! also
        climb = climb + dt * (force - gravity - 0.4 * climb)
        drift = drift - dt * 0.1 * force * drift
        height = height + dt * climb
        reached = reached + dt * drift
    return torch.stack([reached, height], dim=1)


def aim(target, iterations, steps):
    speed = torch.zeros(len(target), 2, requires_grad=True)
    optimizer = torch.optim.Adam([speed], lr=0.05)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, iterations)
    losses = []
    for _ in range(iterations):
        optimizer.zero_grad()
        loss = (simulate(speed, steps) - target).square().sum(1).mean()
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return speed.detach(), losses


torch.manual_seed(23)
target = torch.stack([torch.empty(16).uniform_(0.3, 0.9), torch.empty(16).uniform_(0.3, 0.6)], dim=1)
speed, losses = aim(target, iterations=80, steps=45)
print("miss", losses[0], "->", losses[-1])
print(speed[:3])
