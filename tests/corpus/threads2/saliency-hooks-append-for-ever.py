# /// case
# title = "Hooks append activations to lists that are never emptied"
# category = "hook"
# kind = "graph-retained-in-container"
# kinds_also_ok = ["graph-retained-list"]
# severity = "warning"
# names = ["activations", "save_activation", "append"]
# symptom = "the activations of all iterations stay with their graphs"
# symptom_check = "stored == 10"
# cause = "the lists are never emptied"
# fix = "empty them in each call"
# evidence = [
#     { url = "https://github.com/jacobgil/pytorch-grad-cam/issues/71", title = "[Bug]Will run out of memory" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class ActivationsAndGradients:
    def __init__(self, model, target_layer):
        self.model = model
        self.gradients, self.activations = [], []
        target_layer.register_forward_hook(self.save_activation)
        target_layer.register_full_backward_hook(self.save_gradient)

    def save_activation(self, module, inputs, output):
        self.activations.append(output)  #! here

    def save_gradient(self, module, grad_input, grad_output):
        self.gradients.append(grad_output[0])  #! also

    def __call__(self, x):
#+         self.gradients, self.activations = [], []
        return self.model(x)


class GuidedTraining:
    """Cross entropy and a penalty on the attention outside the object."""

    def __init__(self, model, layer, lr=1e-2):
        self.cam = ActivationsAndGradients(model, layer)
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)

    def step(self, images, labels, boxes):
        logits = self.cam(images)
        act = self.cam.activations[-1]
        heat = F.relu(act.mean(1))
        outside = (heat * (1 - boxes)).mean()
        loss = F.cross_entropy(logits, labels) + 0.1 * outside
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item(), self.cam.gradients[-1].abs().mean().item()


torch.manual_seed(116)
model = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.Flatten(), nn.Linear(6 * 36, 3))
job = GuidedTraining(model, model[0])
for iteration in range(10):
    boxes = torch.zeros(4, 6, 6)
    boxes[:, 2:5, 2:5] = 1
    print(job.step(torch.rand(4, 3, 6, 6), torch.randint(0, 3, (4,)), boxes))
stored = len(job.cam.activations)
