import torch
import torch.nn as nn


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.weight = weight
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.weight * grad, None


torch.manual_seed(50)
encoder, decoder, speaker = nn.Linear(6, 10), nn.Linear(10, 6), nn.Linear(10, 4)
opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters(), *speaker.parameters()], lr=1e-3)
for step in range(5):
    mel, who = torch.randn(12, 6), torch.randint(0, 4, (12,))
    code = torch.tanh(encoder(mel))
    adversary = nn.functional.cross_entropy(speaker(Reverse.apply(code, 0.2)), who)
    loss = nn.functional.l1_loss(decoder(code), mel) + adversary
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item(), adversary.item())
