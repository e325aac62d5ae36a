import torch
import torch.nn as nn


def slow_down(module, factor):
    return [p.register_hook(lambda g: g * factor) for p in module.parameters()]


torch.manual_seed(33)
embed, rnn, out = nn.Embedding(15, 10), nn.RNN(10, 20, batch_first=True), nn.Linear(20, 15)
slow_down(embed, 0.1)
for p in rnn.parameters():
    p.register_hook(lambda g: g.clamp(-0.5, 0.5))
params = [p for m in (embed, rnn, out) for p in m.parameters()]
opt = torch.optim.SGD(params, lr=0.1, momentum=0.9)
for it in range(10):
    ids = (torch.randint(0, 15, (12, 1)) + 2 * torch.arange(9)) % 15
    logits = out(rnn(embed(ids[:, :-1]))[0])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
