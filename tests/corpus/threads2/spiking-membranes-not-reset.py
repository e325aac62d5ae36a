# /// case
# title = "Membrane potentials of a spiking net live on into the next batch"
# category = "retention"
# kind = "graph-carried-across-steps"
# kinds_also_ok = ["second-backward-freed-graph"]
# severity = "error"
# names = ["mem", "reset", "forward_pass"]
# symptom = "RuntimeError in the second iteration"
# raises = "RuntimeError"
# raises_message = "backward through the graph a second time"
# cause = "the layers keep the membrane potential of the last batch"
# fix = "reset the hidden states at the start of each pass"
# evidence = [
#     { url = "https://github.com/jeshraghian/snntorch/issues/250", title = "Basic S-CNN - RuntimeError: Trying to backward through the graph a second time; try [retain_graph=True]" },
# ]
# ///
import torch
import torch.nn as nn


class Spike(torch.autograd.Function):
    @staticmethod
    def forward(ctx, potential):
        ctx.save_for_backward(potential)
        return (potential > 0).float()

    @staticmethod
    def backward(ctx, grad_output):
        (potential,) = ctx.saved_tensors
        return grad_output / (1 + 10 * potential.abs()).pow(2)


class Leaky(nn.Module):
    def __init__(self, beta=0.9, threshold=1.0):
        super().__init__()
        self.beta, self.threshold, self.mem = beta, threshold, None

    def reset(self):
        self.mem = None

    def forward(self, current):
        mem = torch.zeros_like(current) if self.mem is None else self.mem
        mem = self.beta * mem + current
        spikes = Spike.apply(mem - self.threshold)
        self.mem = mem - spikes.detach() * self.threshold  #! also
        return spikes


net = nn.Sequential(nn.Linear(10, 20), Leaky(), nn.Linear(20, 4), Leaky())


def forward_pass(net, data, num_steps=5):
#+     for layer in net:
#+         if isinstance(layer, Leaky):
#+             layer.reset()
    recorded = []  #! here
    for _ in range(num_steps):
        recorded.append(net(data))
    return torch.stack(recorded)


torch.manual_seed(19)
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for i in range(4):
    data, targets = torch.rand(16, 10) * 3, torch.randint(0, 4, (16,))
    spk_rec = forward_pass(net, data)  #! here
    loss = nn.functional.cross_entropy(spk_rec.sum(0), targets)
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
print(loss.item())
