# /// case
# title = "module.requires_grad = False sets a plain attribute; the backbone is not frozen"
# category = "requires-grad"
# kind = "freeze-without-effect"
# severity = "warning"
# names = ["backbone"]
# difficulty = "hard"
# symptom = "silent: backbone weights change although the code freezes them"
# symptom_check = "not torch.equal(before, net.backbone[0].weight)"
# cause = "nn.Module has no requires_grad flag: the assignment only makes a new Python attribute"
# fix = "module.requires_grad_(False) or loop over parameters()"
# evidence = [
#     { url = "https://github.com/catalyst-team/catalyst/issues/79" },
#     { url = "https://github.com/HengyiWang/Co-SLAM/issues/12" },
#     { url = "https://github.com/HazyResearch/metal/issues/95" },
# ]
# ///
import torch
import torch.nn as nn

torch.manual_seed(4)


class Transfer(nn.Module):
    def __init__(self, backbone, n_out):
        super().__init__()
        self.backbone = backbone
        self.out = nn.Linear(12, n_out)

    def forward(self, z):
        return self.out(self.backbone(z))


pretrained = nn.Sequential(nn.Linear(8, 12), nn.GELU())
net = Transfer(pretrained, 2)
net.backbone.requires_grad = False  #- here
#+ net.backbone.requires_grad_(False)
before = net.backbone[0].weight.detach().clone()

optimizer = torch.optim.AdamW([q for q in net.parameters() if q.requires_grad], lr=1e-2, weight_decay=0.0)
data, target = torch.randn(30, 8), torch.randint(0, 2, (30,))
for epoch in range(5):
    optimizer.zero_grad(set_to_none=True)
    loss = nn.CrossEntropyLoss()(net(data), target)
    loss.backward()
    optimizer.step()
drift = (net.backbone[0].weight - before).abs().max().item()
print("backbone drift", drift)
