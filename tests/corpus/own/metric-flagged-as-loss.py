# /// case
# category = "leaf"
# kind = "requires-grad-forced-on-loss"
# severity = "warning"
# names = ["loss", "accuracy"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 3))
adam = torch.optim.Adam(net.parameters(), lr=1e-2)
features, labels = torch.randn(30, 5), torch.randint(0, 3, (30,))
for epoch in range(3):
    adam.zero_grad()
    predicted = net(features).argmax(-1)  #- here
    accuracy = (predicted == labels).float().mean()  #- also
    loss = (1 - accuracy).requires_grad_()  #- here
#+     loss = nn.functional.cross_entropy(net(features), labels)
    loss.backward()
    adam.step()
    print(epoch, loss.item())
