# /// case
# title = "The backward that makes the adversarial images also fills the parameters' gradients"
# category = "accumulation"
# kind = "gradients-leak-from-auxiliary-backward"
# kinds_also_ok = ["missing-zero-grad", "stale-gradient", "adversarial-backward-accumulates"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["perturb", "backward", "zero_grad"]
# symptom = "the gradient that is stepped is not that of the training loss"
# symptom_check = "max(ratios) > 1.2"
# cause = "perturb() calls backward() for the image's gradient, which adds to every parameter's too, and the gradients were cleared before it."
# fix = "torch.autograd.grad of the image alone"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(38)
net = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2),
    nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(128, 3),
)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)


def perturb(image, label, epsilon=0.1):
    """One step of the fast gradient sign method from a random start."""
    image = (image + torch.empty_like(image).uniform_(-epsilon, epsilon)).requires_grad_()
    loss = F.cross_entropy(net(image), label)
    loss.backward()  #- here
    direction = image.grad.sign()  #- also
#+     direction = torch.autograd.grad(loss, image)[0].sign()
    return (image + epsilon * direction).clamp(0, 1).detach()


def gradient_norm():
    return nn.utils.get_total_norm([p.grad for p in net.parameters()]).item()


images = torch.rand(64, 1, 8, 8)
labels = images[:, 0, :4].mean((1, 2)).argsort().argsort() * 3 // 64
ratios = []
for epoch in range(3):
    for rows in torch.randperm(64).split(16):
        image, label = images[rows], labels[rows]
        optimizer.zero_grad()  #! here
        attacked = perturb(image, label)  #! here
        loss = F.cross_entropy(net(attacked), label)
        alone = nn.utils.get_total_norm(torch.autograd.grad(loss, list(net.parameters()), retain_graph=True)).item()
        loss.backward()  #! also
        ratios.append(gradient_norm() / alone)
        optimizer.step()
    print(epoch, loss.item(), gradient_norm())
