# /// case
# title = "Dropout is on in evaluation too"
# category = "mode"
# kind = "dropout-without-mode"
# severity = "warning"
# names = ["F.dropout", "training"]
# symptom = "predictions in evaluation mode are random"
# symptom_check = "not torch.equal(net(ids), net(ids))"
# cause = "F.dropout's training is True unless told otherwise"
# fix = "training=self.training"
# evidence = [
#     { url = "https://github.com/rixwew/pytorch-fm/issues/21", title = "F.dropout的问题" },
#     { url = "https://github.com/delip/PyTorchNLPBook/issues/28", title = "dropout error" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class TextCNN(nn.Module):
    def __init__(self, vocab=60, dim=12, classes=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.convs = nn.ModuleList(nn.Conv1d(dim, 8, k) for k in (2, 3))
        self.fc = nn.Linear(16, classes)

    def forward(self, ids):
        x = self.embed(ids).transpose(1, 2)
        x = torch.cat([F.relu(c(x)).amax(-1) for c in self.convs], 1)
        x = F.dropout(x, 0.5)  #- here
#+         x = F.dropout(x, 0.5, self.training)
        return self.fc(x)


torch.manual_seed(51)
ids = torch.randint(0, 60, (120, 15))
label = (ids < 8).any(1).long()
net = TextCNN()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(6):
    net.train()
    for rows in torch.randperm(100).split(25):
        opt.zero_grad()
        F.cross_entropy(net(ids[rows]), label[rows]).backward()
        opt.step()
    net.eval()  #! also
    with torch.no_grad():
        print(epoch, (net(ids[100:]).argmax(1) == label[100:]).float().mean().item())
