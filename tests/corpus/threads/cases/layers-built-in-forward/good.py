import torch


class TwoLayerNet(torch.nn.Module):
    def __init__(self, d_in, hidden, d_out):
        super().__init__()
        self.hidden, self.d_in = hidden, d_in
        self.project = torch.nn.Linear(d_in, hidden)
        self.linear2 = torch.nn.Linear(hidden, d_out)

    def forward(self, x):
        h = self.project(x).clamp(min=0)
        return self.linear2(h)


torch.manual_seed(0)
model = TwoLayerNet(30, 20, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
x, y = torch.randn(64, 30), torch.randn(64, 4)
for t in range(15):
    loss = torch.nn.functional.mse_loss(model(x), y, reduction="mean")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
