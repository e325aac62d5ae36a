# %%
import torch

torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
xs = torch.linspace(-1, 1, 30).reshape(10, 3)
ys = xs.sum(1, keepdim=True)
# %%
history = []
for epoch in range(5):
    optimizer.zero_grad()
    loss = (model(xs) - ys).pow(2).mean()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
    print(f"epoch {epoch} loss {loss.item():.5f}")
# %%
history[0] > history[-1]
# %%
model.eval()
with torch.no_grad():
    rounded = (model(xs) * 1000).round()
rounded.shape
# %%
schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
schedule.step()
optimizer.param_groups[0]["lr"]
