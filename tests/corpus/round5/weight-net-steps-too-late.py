# /// case
# title = "Weights are stepped before the second loss is walked back through them"
# category = "in-place"
# kind = "step-before-backward"
# kinds_also_ok = ["in-place-modification"]
# severity = "error"
# names = ["optimizer", "loss_w", "step"]
# symptom = "the second backward needs weights that the step has changed"
# raises = "RuntimeError"
# raises_message = "modified by an inplace operation"
# cause = "optimizer.step() changes the classifier in place between the two backward calls"
# fix = "walk back both losses, then step"
# evidence = [
#     { url = "https://github.com/JerryYLi/bg-resample-ood/issues/1", title = "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2)
n_bg = 200
backbone = nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU())
fc = nn.Linear(24, 4)
bg_weight = nn.Parameter(torch.zeros(n_bg))
background = torch.randn(n_bg, 10) * 2

optimizer = torch.optim.SGD([*backbone.parameters(), *fc.parameters()], lr=0.05, momentum=0.9)
optimizer_w = torch.optim.SGD([bg_weight], lr=0.5)

for it in range(5):
    x, y = torch.randn(32, 10), torch.randint(0, 4, (32,))
    idx = torch.randint(0, n_bg, (32,))
    logits = fc(backbone(x))
    logits_bg = fc(backbone(background[idx]))
    # background is answered with a uniform distribution
    uniformity = -F.log_softmax(logits_bg, 1).mean(1)
    w = bg_weight.sigmoid()[idx]
    loss = F.cross_entropy(logits, y) + 0.5 * (w.detach() * uniformity).mean()
    # the reweighting looks for background that is hard
    loss_w = -(w * uniformity).mean() / w.mean()

    optimizer.zero_grad()
    optimizer_w.zero_grad()
    loss.backward(retain_graph=True)
#+     bg_weight.grad = torch.autograd.grad(loss_w, bg_weight)[0]
    optimizer.step()  #! here
    loss_w.backward()  #- also
    optimizer_w.step()
    print(it, loss.item(), loss_w.item())
