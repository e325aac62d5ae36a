# /// case
# title = "The hand-written backward of swish leaves out a term"
# category = "function"
# kind = "wrong-custom-backward"
# kinds_also_ok = ["gradient-formula-wrong"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["backward", "Swish", "sigmoid"]
# symptom = "the analytic gradient differs from the numeric one"
# symptom_check = "not torch.autograd.gradcheck(Swish.apply, (torch.linspace(-2, 2, 7, dtype=torch.double, requires_grad=True),), raise_exception=False)"
# cause = "The derivative of x * sigmoid(x) is sigmoid(x) + x * sigmoid'(x), and backward returns the first term alone."
# fix = "add the second term"
# ///
import torch
import torch.nn as nn


class Swish(torch.autograd.Function):
    """Keeps the input only and computes the sigmoid again in the backward."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad_output):
        x, = ctx.saved_tensors
        gate = torch.sigmoid(x)
        return grad_output * gate  #- here
#+         return grad_output * (gate + x * gate * (1 - gate))


class MemoryEfficientSwish(nn.Module):
    def forward(self, x):
        return Swish.apply(x)  #! also


def separable(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, inputs, 3, padding=1, groups=inputs, bias=False),
        nn.Conv2d(inputs, outputs, 1, bias=False),
        nn.BatchNorm2d(outputs),
        MemoryEfficientSwish(),
    )


class SmallNet(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.features = nn.Sequential(separable(2, 8), nn.AvgPool2d(2), separable(8, 12))
        self.out = nn.Linear(12, classes)

    def forward(self, image):
        return self.out(self.features(image).mean((2, 3)))


torch.manual_seed(45)
net = SmallNet()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
labels = torch.randint(0, 4, (64,))
images = torch.randn(64, 2, 8, 8) + torch.stack([labels % 2, labels // 2], 1)[:, :, None, None]
for epoch in range(4):
    for rows in torch.randperm(64).split(16):
        loss = nn.functional.cross_entropy(net(images[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
