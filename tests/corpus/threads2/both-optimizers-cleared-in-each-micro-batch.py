# /// case
# title = "Two optimizers are cleared in each micro-batch of an accumulation window"
# category = "accumulation"
# kind = "zero-grad-inside-accumulation"
# severity = "warning"
# names = ["optimizer_proj", "optimizer_distill", "zero_grad"]
# symptom = "a step uses the last micro-batch only"
# symptom_check = "not any(whole_window)"
# cause = "zero_grad() before each backward call of the window"
# fix = "clear after the steps"
# evidence = [
#     { url = "https://github.com/tientrandinh/Revisiting-Reverse-Distillation/issues/12", title = "Is it something wrong with grad acc?" },
#     { url = "https://github.com/huggingface/accelerate/issues/1299", title = "when use gradient_accumulation, optimizer.zero_grad() must be put to the end of a training iteration" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


def distill_loss(a, b):
    return (1 - F.cosine_similarity(a, b, dim=1)).mean()


class Projector(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(dim, dim), nn.LeakyReLU(), nn.Linear(dim, dim))

    def forward(self, x):
        return x + self.layers(x)


def train(epochs=2, accumulation_steps=4, dim=10):
    torch.manual_seed(5)
    encoder = nn.Linear(20, dim).requires_grad_(False)
    projection, bottleneck, decoder = Projector(dim), nn.Linear(dim, 4), nn.Linear(4, dim)
    optimizer_proj = torch.optim.Adam(projection.parameters(), lr=1e-3)
    optimizer_distill = torch.optim.Adam([*bottleneck.parameters(), *decoder.parameters()], lr=5e-3)
    data = torch.randn(8, 6, 20)
    steps, wanted = [], torch.zeros(dim, 4)
    for epoch in range(epochs):
        for i, img in enumerate(data):
            feats = encoder(img)
            noisy = encoder(img + 0.2 * torch.randn_like(img))
            loss_proj = distill_loss(projection(noisy), feats)
            out = decoder(torch.tanh(bottleneck(projection(feats))))
            loss = (distill_loss(out, feats) + 0.2 * loss_proj) / accumulation_steps
            wanted += torch.autograd.grad(loss, decoder.weight, retain_graph=True)[0]
            optimizer_proj.zero_grad()  #- here
            optimizer_distill.zero_grad()  #- here
            loss.backward()
            if (i + 1) % accumulation_steps == 0:
                steps.append(torch.allclose(decoder.weight.grad, wanted, atol=1e-6))
                wanted.zero_()
                optimizer_proj.step()  #! also
                optimizer_distill.step()  #! also
#+                 optimizer_proj.zero_grad()
#+                 optimizer_distill.zero_grad()
    return steps


whole_window = train()
print(whole_window)
