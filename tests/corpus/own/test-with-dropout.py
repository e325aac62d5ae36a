# /// case
# category = "mode"
# kind = "evaluating-in-train-mode"
# severity = "warning"
# names = ["net"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
train_x, train_y = torch.randn(30, 8), torch.randint(0, 3, (30,))
for epoch in range(3):
    loss = nn.functional.cross_entropy(net(train_x), train_y)
    opt.zero_grad()
    loss.backward()
    opt.step()
#+     net.eval()
    with torch.no_grad():
        guesses = net(torch.randn(15, 8)).argmax(1)  #! here
        share = (guesses == torch.randint(0, 3, (15,))).float().mean()
#+     net.train()
    print(epoch, share.item())
