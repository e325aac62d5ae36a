# /// case
# title = "After the first validation training goes on in evaluation mode"
# category = "mode"
# kind = "eval-mode-left-on"
# kinds_also_ok = ["missing-train-mode"]
# severity = "warning"
# names = ["eval", "validate"]
# symptom = "three quarters of the steps have no dropout and fixed statistics"
# symptom_check = "model[1].num_batches_tracked.item() < run.iters"
# cause = "validate does not put training mode back, and train() is called at epochs only"
# fix = "model.train() after validation"
# evidence = [
#     { url = "https://github.com/fartashf/vsepp/issues/4", title = "Finish validation without running model.train()" },
#     { url = "https://github.com/shubhamagarwal92/mmd/issues/14", title = "model.eval() in train.py" },
# ]
# ///
import torch
import torch.nn as nn


class Experiment:
    def __init__(self, model, lr=1e-3, val_every=5):
        self.model, self.val_every, self.iters = model, val_every, 0
        self.opt = torch.optim.Adam(model.parameters(), lr=lr)

    def validate(self, x, y):
        self.model.eval()  #! here
        with torch.no_grad():
            return nn.functional.mse_loss(self.model(x), y).item()  #- also
#+             error = nn.functional.mse_loss(self.model(x), y).item()
#+         self.model.train()
#+         return error

    def fit(self, train, val, epochs):
        for epoch in range(epochs):
            self.model.train()  #! also
            for x, y in train:
                self.iters += 1
                self.opt.zero_grad()
                loss = nn.functional.mse_loss(self.model(x), y)
                loss.backward()
                self.opt.step()
                if self.iters % self.val_every == 0:
                    print(self.iters, loss.item(), self.validate(*val))  #! also


torch.manual_seed(47)
x = torch.randn(440, 5)
y = x.cos().sum(1, keepdim=True)
model = nn.Sequential(nn.Linear(5, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 1))
run = Experiment(model)
run.fit(list(zip(x[:400].split(20), y[:400].split(20))), (x[400:], y[400:]), epochs=2)
print(model[1].num_batches_tracked.item(), run.iters)
