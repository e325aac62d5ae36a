# /// case
# title = "Only the decoder's parameters are passed to the optimizer"
# category = "optimizer-wiring"
# kind = "parameters-not-in-optimizer"
# severity = "warning"
# names = ["encoder", "trainer"]
# difficulty = "easy"
# symptom = "silent: encoder gets gradients but never moves"
# symptom_check = "torch.equal(w0, encoder[0].weight) and encoder[0].weight.grad is not None"
# cause = "the optimizer was built from one module only"
# fix = "pass both parameter lists"
# evidence = [
#     { url = "https://github.com/bubbliiiing/efficientdet-pytorch/issues/37" },
#     { url = "https://github.com/ikostrikov/pytorch-meta-optimizer/issues/11" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(12, 6), nn.ReLU())
decoder = nn.Sequential(nn.Linear(6, 12))
w0 = encoder[0].weight.detach().clone()
trainer = torch.optim.Adam(decoder.parameters(), lr=1e-2)  #- here
#+ trainer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-2)
for _ in range(20):
    x = torch.rand(32, 12)
    trainer.zero_grad()
    loss = (decoder(encoder(x)) - x).pow(2).mean()
    loss.backward()
    trainer.step()
print(loss.item())
