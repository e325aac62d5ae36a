# /// case
# title = "Flag is set on the perturbed image of the last iteration"
# category = "flags"
# kind = "flag-change-on-non-leaf"
# kinds_also_ok = ["requires-grad-flag-on-nonleaf"]
# severity = "error"
# names = ["requires_grad", "adv_image", "image"]
# symptom = "RuntimeError: you can only change requires_grad flags of leaf variables"
# raises = "RuntimeError"
# raises_message = "you can only change requires_grad flags of leaf variables"
# cause = "the next iteration gets a tensor with a graph"
# fix = "return the detached image"
# evidence = [
#     { url = "https://github.com/Harry24k/adversarial-attacks-pytorch/issues/2", title = "Cannot set requires_grad in deepfool" },
# ]
# ///
import torch
import torch.nn as nn


class Attack:
    def __init__(self, model):
        self.model = model

    def __call__(self, *args):
        was_training = self.model.training
        self.model.eval()
        try:
            return self.forward(*args)
        finally:
            self.model.train(was_training)


class DeepFool(Attack):
    def __init__(self, model, steps=3, overshoot=0.02):
        super().__init__(model)
        self.steps, self.overshoot = steps, overshoot

    def forward(self, images, labels):
        found = []
        for image, label in zip(images, labels):
            image = image.unsqueeze(0)
            for _ in range(self.steps):
                image, pre = self.one_step(image, label)
                if pre != label:
                    break
            found.append(image)
        return torch.cat(found)

    def one_step(self, image, label):
        image.requires_grad = True  #! here
        logits = self.model(image)[0]
        order = logits.argsort(descending=True)
        other = order[1] if order[0] == label else order[0]
        w = torch.autograd.grad(logits[other] - logits[label], image, retain_graph=True)[0]
        gap = (logits[other] - logits[label]).abs()
        adv_image = image + (1 + self.overshoot) * gap * w / w.norm().pow(2).clamp_min(1e-6)
        adv_image = adv_image.clamp(0, 1)
        return adv_image, logits.argmax()  #- here
#+         return adv_image.detach(), logits.argmax()


torch.manual_seed(6)
net = nn.Sequential(nn.Flatten(), nn.Linear(16, 3))
images = torch.rand(4, 1, 4, 4)
labels = net(images).argmax(1)
print(DeepFool(net)(images, labels).shape)
