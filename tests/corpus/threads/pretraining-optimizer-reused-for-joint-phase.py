# /// case
# title = "Second phase reuses the optimizer of the first, so the new module never trains"
# category = "optimizer-time"
# kind = "parameters-not-in-optimizer"
# severity = "warning"
# names = ["decoder", "opt"]
# symptom = "the regressor of phase two does not move"
# symptom_check = "torch.equal(regressor.weight, start)"
# cause = "its parameters were never given to the optimizer"
# fix = "add them as a group"
# evidence = [
#     { url = "https://github.com/zjunlp/HVPNeT/issues/5", title = "Not putting parameters into optimizer but still trainable" },
#     { url = "https://github.com/ACEsuit/mace/issues/525", title = "Automatically add parameters to optimizer" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(5)
encoder, decoder = nn.Linear(10, 4), nn.Linear(4, 10)
opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-2)  #! here
data = torch.randn(64, 10)
labels = data.sum(1, keepdim=True)

for _ in range(10):
    opt.zero_grad()
    nn.functional.mse_loss(decoder(torch.tanh(encoder(data))), data).backward()
    opt.step()

regressor = nn.Linear(4, 1)  #! here
nn.init.xavier_normal_(regressor.weight)
start = regressor.weight.detach().clone()
#+ opt.add_param_group({"params": regressor.parameters()})
for _ in range(10):
    opt.zero_grad()
    loss = nn.functional.mse_loss(regressor(torch.tanh(encoder(data))), labels)
    loss.backward()
    opt.step()  #! also
print(loss.item())
