# /// case
# title = "Frozen layers keep moving through momentum and weight decay"
# category = "optimizer-wiring"
# kind = "frozen-parameter-still-updated"
# severity = "warning"
# severity_by_writer = "error"
# names = ["encoder", "opt"]
# difficulty = "hard"
# symptom = "The encoder keeps changing after it has been frozen; silent."
# symptom_check = "not torch.equal(stage1['0.weight'], net.encoder[0].weight)"
# cause = "requires_grad is switched off, but zero_grad(set_to_none=False) leaves zero gradients in place; SGD then still applies momentum and weight decay to the frozen parameters."
# fix = "Drop the gradients (set_to_none=True) or take the parameters out of the optimizer when freezing."
# evidence = [{ url = "https://github.com/iamwangyabin/S-Prompts/pull/2" }, { url = "https://github.com/facebookresearch/fairseq/issues/4702" }, { url = "https://github.com/KellerJordan/Muon/issues/54" }]
# ///
import torch
from torch import nn

torch.manual_seed(2)


class AutoClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(10, 16), nn.Tanh())
        self.decoder = nn.Linear(16, 10)
        self.classifier = nn.Linear(16, 2)

    def forward(self, x):
        z = self.encoder(x)
        return self.decoder(z), self.classifier(z)


net = AutoClassifier()
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-2)  #! also
data = torch.randn(256, 10)
labels = (data[:, :3].sum(1) > 0).long()

# stage 1: representation
for step in range(30):
    recon, _ = net(data)
    loss = nn.functional.mse_loss(recon, data)
    opt.zero_grad()
    loss.backward()
    opt.step()

# stage 2: linear probe on the fixed representation
for p in [*net.encoder.parameters(), *net.decoder.parameters()]:
    p.requires_grad_(False)  #! here
stage1 = {k: v.clone() for k, v in net.encoder.state_dict().items()}
for step in range(30):
    _, logits = net(data)
    loss = nn.functional.cross_entropy(logits, labels)
    opt.zero_grad(set_to_none=False)  #- here
#+     opt.zero_grad()
    loss.backward()
    opt.step()  #! here
print("probe loss", loss.item())
