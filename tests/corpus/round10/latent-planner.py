# /// case
# title = "The callback adds another hook to each parameter of the encoder in every epoch"
# category = "hook"
# kind = "hooks-pile-up"
# kinds_also_ok = ["hook-registered-every-epoch", "gradient-scaled-repeatedly", "hooks-never-removed"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["register_hook", "on_epoch_start", "ScaleEncoderGradient"]
# symptom = "the encoder's gradients are halved again each epoch and it soon stops learning"
# symptom_check = "len(next(model.encoder.parameters())._backward_hooks) > 1"
# cause = "Hooks on parameters stay; registered per epoch, the factors multiply."
# fix = "register once, in on_fit_start"
# ///
import torch
from torch import nn


class Callback:
    def on_fit_start(self, model): pass
    def on_epoch_start(self, model): pass
    def on_epoch_end(self, model, loss): pass


class ScaleEncoderGradient(Callback):
    def __init__(self, factor):
        self.factor = factor

    def on_epoch_start(self, model):  #- here
#+     def on_fit_start(self, model):
        for p in model.encoder.parameters():
            p.register_hook(lambda g: self.factor * g)  #! also


class Recorder(Callback):
    def on_fit_start(self, model):
        self.loss, self.encoder_grad = [], []

    def on_epoch_end(self, model, loss):
        self.loss.append(loss)
        self.encoder_grad.append(sum(p.grad.norm().item() for p in model.encoder.parameters()))


class LatentModel(nn.Module):
    def __init__(self, obs_dim, act_dim, latent=8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(obs_dim, 32), nn.ReLU(), nn.Linear(32, latent))
        self.dynamics = nn.Sequential(nn.Linear(latent + act_dim, 32), nn.ReLU(), nn.Linear(32, latent))
        self.reward = nn.Linear(latent, 1)

    def forward(self, obs, acts):
        z, rewards = self.encoder(obs), []
        for a in acts.unbind(1):
            z = z + self.dynamics(torch.cat([z, a], -1))
            rewards.append(self.reward(z))
        return torch.cat(rewards, 1)


class Fit:
    def __init__(self, model, callbacks, lr=0.05):
        self.model, self.callbacks = model, callbacks
        self.opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)

    def __call__(self, data, epochs, batch):
        for cb in self.callbacks:
            cb.on_fit_start(self.model)
        for _ in range(epochs):
            for cb in self.callbacks:
                cb.on_epoch_start(self.model)  #! also
            for rows in torch.randperm(len(data[0])).split(batch):
                obs, acts, rewards = (t[rows] for t in data)
                loss = nn.functional.mse_loss(self.model(obs, acts), rewards)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            for cb in self.callbacks:
                cb.on_epoch_end(self.model, loss.item())


torch.manual_seed(15)
obs, acts = torch.randn(600, 5), torch.rand(600, 4, 2) * 2 - 1
path = (obs[:, None, :2] + 0.5 * acts.cumsum(1))
rewards = torch.tanh(path[..., 0] * obs[:, None, 2]) - 0.3 * path[..., 1].abs()
model, recorder = LatentModel(5, 2), Recorder()
Fit(model, [ScaleEncoderGradient(0.5), recorder])((obs, acts, rewards), epochs=15, batch=60)
print("loss", recorder.loss[0], recorder.loss[-1], "grad", recorder.encoder_grad[-1])
