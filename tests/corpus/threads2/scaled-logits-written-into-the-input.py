# /// case
# title = "Function writes into its input without mark_dirty"
# category = "function"
# kind = "custom-function-dirty-not-marked"
# kinds_also_ok = ["custom-function-wrong-gradient", "saved-changed-unseen", "custom-function-incomplete"]
# severity = "warning"
# names = ["forward", "mark_dirty", "x"]
# symptom = "the input keeps its old place in the graph although its value has doubled"
# symptom_check = "doubled[0].item() == 2.0"
# cause = "the function changes its input without telling autograd"
# fix = "out of place (or ctx.mark_dirty)"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/30454", title = "backward not called with custom op" },
# ]
# ///
import torch
import torch.nn as nn


class ScaleLogits(torch.autograd.Function):
    """Doubles in place, to save memory at the last layer."""

    @staticmethod
    def forward(ctx, x):
        x *= 2.0  #- here
        return x  #- here
#+         return x * 2.0

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2.0


class Net(nn.Module):
    def __init__(self, in_channel, out_channel, scale=4.0):
        super().__init__()
        self.fc = nn.Linear(in_channel, out_channel)
        self.s = scale

    def forward(self, inputs):
        x = self.fc(inputs)
        logits = ScaleLogits.apply(x)  #! also
        logits = logits * self.s
        return logits, x


torch.manual_seed(114)
net = Net(16, 6)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
reg = 1e-3
for it in range(4):
    inputs, labels = torch.randn(12, 16), torch.randint(0, 6, (12,))
    logits, raw = net(inputs)
    loss = nn.functional.cross_entropy(logits, labels) + reg * raw.pow(2).sum()  #! also
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

probe = torch.ones(2, requires_grad=True)
doubled = probe * 1.0
out = ScaleLogits.apply(doubled)
(out + 3 * doubled).sum().backward()
print(loss.item(), probe.grad)
