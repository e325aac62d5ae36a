# /// case
# title = "Features are standardised before the split"
# category = "data"
# kind = "leak-through-normalisation"
# kinds_also_ok = ["data-leak"]
# severity = "warning"
# names = ["mean", "std", "split"]
# symptom = "statistics of test rows are in the training data"
# symptom_check = "not torch.allclose(used_mean, x_raw[:n_train].mean(0), atol=1e-4)"
# cause = "mean and deviation are of all rows"
# fix = "of the training rows only"
# evidence = [
#     { url = "https://github.com/udacity/deep-learning/issues/143", title = "Information leakage in Project 1" },
# ]
# ///
import torch
import torch.nn as nn

torch.manual_seed(100)
# hours of bike rentals, in order; the last weeks are the test
hours = torch.arange(24 * 60)
temp = 10 + 15 * torch.sin(hours / 24 / 60 * 3.1) + torch.randn(len(hours))
wind = (8 + 3 * torch.randn(len(hours)) + hours / 300).clamp(min=0)
x_raw = torch.stack([temp, wind, (hours % 24).float()], 1)
y = 50 + 4 * temp - 2 * wind + 20 * torch.sin((hours % 24) / 24 * 6.28) + 5 * torch.randn(len(hours))
n_train = len(hours) - 24 * 21

quant_features = ["temp", "windspeed", "hr"]
scaled_features = {}
x = x_raw.clone()
for i, each in enumerate(quant_features):
    mean, std = x_raw[:, i].mean(), x_raw[:, i].std()  #- here
#+     mean, std = x_raw[:n_train, i].mean(), x_raw[:n_train, i].std()
    scaled_features[each] = [mean, std]
    x[:, i] = (x_raw[:, i] - mean) / std  #! also
used_mean = torch.stack([scaled_features[each][0] for each in quant_features])
y_mean, y_std = y[:n_train].mean(), y[:n_train].std()
target = (y - y_mean) / y_std

# save the last days for testing
train_x, train_y = x[:n_train], target[:n_train]  #! also
test_x, test_y = x[n_train:], target[n_train:]

network = nn.Sequential(nn.Linear(3, 12), nn.Sigmoid(), nn.Linear(12, 1))
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for epoch in range(3):
    for idx in torch.randperm(n_train).split(128):
        loss = (network(train_x[idx]).squeeze(1) - train_y[idx]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        val = (network(test_x).squeeze(1) - test_y).square().mean()
    print(epoch, loss.item(), val.item())
