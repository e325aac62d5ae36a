# /// case
# title = "A generator of parameters is used twice"
# category = "optimizer"
# kind = "exhausted-parameter-generator"
# kinds_also_ok = ["clipping-without-effect"]
# severity = "warning"
# names = ["params", "clip_grad_norm_"]
# symptom = "nothing is clipped; the norm is said to be 0"
# symptom_check = "float(norm) == 0 and after > 2 * max_norm"
# cause = "the generator is empty when clip_grad_norm_ gets it"
# fix = "list(model.parameters())"
# ///
import torch
import torch.nn as nn

torch.manual_seed(16)


class LSTMRegressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(2, 16, batch_first=True)
        self.out = nn.Linear(16, 1)

    def forward(self, x):
        return self.out(self.lstm(x)[0][:, -1])


model = LSTMRegressor()
params = model.parameters()  #- here
#+ params = list(model.parameters())
optimizer = torch.optim.SGD(params, lr=0.01)  #! also
max_norm = 0.5
x = torch.rand(64, 30, 2)
x[..., 1] = (torch.rand(64, 30) < 0.1).float()
y = 20 * x.prod(-1).sum(1, keepdim=True)
for step in range(6):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(params, max_norm)  #! also
    optimizer.step()
    print(step, loss.item(), float(norm))
after = torch.cat([p.grad.flatten() for p in model.parameters()]).norm().item()
