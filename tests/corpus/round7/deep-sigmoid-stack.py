# /// case
# title = "Ten sigmoid layers with small weights"
# category = "scale"
# kind = "vanishing-gradient"
# kinds_also_ok = ["bad-initialization", "saturating-activation"]
# severity = "warning"
# names = ["Sigmoid", "init_weights", "normal_"]
# symptom = "the gradient of the first layer is below 1e-8"
# symptom_check = "model[0].weight.grad.norm().item() < 1e-8"
# cause = "each layer multiplies the gradient by a small weight and by at most 1/4"
# fix = "ReLU with He initialization"
# ///
import torch
import torch.nn as nn

DEPTH, WIDTH = 10, 32


def init_weights(module):
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, mean=0.0, std=0.02)  #- here
#+         nn.init.kaiming_normal_(module.weight)
        nn.init.zeros_(module.bias)


def make_network(n_in, n_out):
    layers = [nn.Linear(n_in, WIDTH), nn.Sigmoid()]  #- also
#+     layers = [nn.Linear(n_in, WIDTH), nn.ReLU()]
    for _ in range(DEPTH - 1):
        layers += [nn.Linear(WIDTH, WIDTH), nn.Sigmoid()]  #- here
#+         layers += [nn.Linear(WIDTH, WIDTH), nn.ReLU()]
    layers.append(nn.Linear(WIDTH, n_out))
    return nn.Sequential(*layers).apply(init_weights)


torch.manual_seed(90)
model = make_network(6, 2)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for step in range(15):
    x = torch.randn(64, 6)
    y = (x[:, 0] * x[:, 1] > 0).long()
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 0:
        print(step, loss.item())
