# /// case
# title = "Adversarial input does not require grad"
# category = "data"
# kind = "input-not-requiring-grad"
# severity = "error"
# names = ["images", "grad", "fgsm"]
# difficulty = "easy"
# symptom = "AttributeError: 'NoneType' object has no attribute 'sign'."
# raises = "AttributeError"
# raises_message = "'NoneType' object has no attribute 'sign'"
# cause = "images is a plain data tensor; without requires_grad autograd does not compute its gradient and images.grad is None."
# fix = "images = images.clone().requires_grad_(True)."
# evidence = [{ url = "https://github.com/BorealisAI/advertorch/issues/49" }, { url = "https://github.com/afraarslan/adversarial-attacks/issues/1" }]
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
EPS = 0.1


class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(1, 8, 3, stride=2)
        self.fc = nn.Linear(8 * 49, 5)

    def forward(self, x):
        return self.fc(F.relu(self.c1(x)).flatten(1))


def fgsm(model, images, labels):
    images = images.clone()  #- here
#+     images = images.clone().requires_grad_(True)
    loss = F.cross_entropy(model(images), labels)
    loss.backward()  #! also
    return (images + EPS * images.grad.sign()).clamp(0, 1).detach()  #! here


net = Conv()
opt = torch.optim.SGD(net.parameters(), lr=0.05)
y = torch.randint(0, 5, (64,))
x = 0.5 * torch.rand(64, 1, 16, 16)
for i, c in enumerate(y.tolist()):
    x[i, 0, 3 * c : 3 * c + 3] += 0.5
for epoch in range(5):
    for xb, yb in zip(x.split(16), y.split(16)):
        adv = fgsm(net, xb, yb)  #! also
        opt.zero_grad()
        loss = 0.5 * (F.cross_entropy(net(xb), yb) + F.cross_entropy(net(adv), yb))
        loss.backward()
        opt.step()
print(loss.item())
