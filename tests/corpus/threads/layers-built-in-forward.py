# /// case
# title = "Layers are constructed inside forward"
# category = "optimizer-time"
# kind = "module-built-each-forward"
# kinds_also_ok = ["parameters-not-in-optimizer"]
# severity = "warning"
# names = ["Linear", "forward"]
# symptom = "the projection is new at each call and is not among the parameters"
# symptom_check = "len(list(model.parameters())) == 2"
# cause = "nn.Linear is called in forward"
# fix = "make it in __init__"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/1291", title = "`list(model.Parameters())` behaves differently for custom `nn.module`" },
# ]
# ///
import torch


class TwoLayerNet(torch.nn.Module):
    def __init__(self, d_in, hidden, d_out):
        super().__init__()
        self.hidden, self.d_in = hidden, d_in
#+         self.project = torch.nn.Linear(d_in, hidden)
        self.linear2 = torch.nn.Linear(hidden, d_out)

    def forward(self, x):
        h = torch.nn.Linear(self.d_in, self.hidden)(x).clamp(min=0)  #- here
#+         h = self.project(x).clamp(min=0)
        return self.linear2(h)


torch.manual_seed(0)
model = TwoLayerNet(30, 20, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)  #! also
x, y = torch.randn(64, 30), torch.randn(64, 4)
for t in range(15):
    loss = torch.nn.functional.mse_loss(model(x), y, reduction="mean")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
