# /// case
# title = "Generated training batch still hangs on the graph of its attack"
# category = "data"
# kind = "missing-detach"
# kinds_also_ok = ["other-loss-in-gradient", "bootstrap-target-tracked"]
# severity = "warning"
# names = ["adv_data", "data_adv", "detach"]
# symptom = "the model's loss also walks back through the attacker"
# symptom_check = "pushed is not None"
# cause = "the batch is not detached"
# fix = "detach it"
# evidence = [
#     { url = "https://github.com/DSE-MSU/DeepRobust/issues/36", title = "requires_grad of adversarial data" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Generator(nn.Module):
    """Smooth perturbations from the input."""

    def __init__(self, bound=0.2):
        super().__init__()
        self.net, self.bound = nn.Linear(12, 12), bound

    def forward(self, x):
        return x + self.bound * torch.tanh(self.net(x))


class AdversarialTraining:
    def __init__(self, model, lr=0.05):
        self.model, self.attacker = model, Generator()
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.attack_optimizer = torch.optim.Adam(self.attacker.parameters(), lr=1e-2)

    def adv_data(self, data, target, steps=2):
        for _ in range(steps):
            self.attack_optimizer.zero_grad()
            (-F.cross_entropy(self.model(self.attacker(data)), target)).backward()
            self.attack_optimizer.step()
        data_adv = self.attacker(data)  #- here
#+         data_adv = self.attacker(data).detach()
        return data_adv, self.model(data_adv)  #! here

    def train(self, loader, epochs):
        for _ in range(epochs):
            for data, target in loader:
                data_adv, output = self.adv_data(data, target)
                self.attack_optimizer.zero_grad()
                self.optimizer.zero_grad()
                loss = F.cross_entropy(output, target)
                loss.backward()  #! also
                self.optimizer.step()
        return loss.item()


torch.manual_seed(131)
defense = AdversarialTraining(nn.Sequential(nn.Linear(12, 20), nn.ReLU(), nn.Linear(20, 3)))
loader = [(torch.randn(10, 12), torch.randint(0, 3, (10,))) for _ in range(3)]
print(defense.train(loader, 2))
pushed = defense.attacker.net.weight.grad
