# /// case
# title = "Each reconstruction registers hooks that nobody removes"
# category = "hook"
# kind = "hook-registered-every-step"
# kinds_also_ok = ["hook-registered-repeatedly", "graph-retained-in-container"]
# severity = "warning"
# names = ["register_forward_hook", "FeatureExtractor"]
# symptom = "hooks of finished reconstructions go on storing features with graphs"
# symptom_check = "len(encoder[1]._forward_hooks) == 5"
# cause = "the handles are thrown away"
# fix = "keep and remove them"
# evidence = [
#     { url = "https://github.com/KamitaniLab/bdpy/issues/72", title = "Forward Hooks Persist After Destroying FeatureExtractor" },
# ]
# ///
import torch
import torch.nn as nn


class FeatureExtractor:
    def __init__(self, encoder, layers):
        self.encoder, self.features = encoder, {}  #-
#+         self.encoder, self.features, self.handles = encoder, {}, []
        for name in layers:
            module = encoder.get_submodule(name)
            module.register_forward_hook(self.save(name))  #- here
#+             self.handles.append(module.register_forward_hook(self.save(name)))

    def save(self, name):
        def hook(module, inputs, output):
            self.features[name] = output

        return hook

    def run(self, x):
        self.features = {}
        self.encoder(x)
        return self.features


def reconstruct(target, encoder, generator, layers, n_iter=4, lr=0.1):
    extractor = FeatureExtractor(encoder, layers)  #! here
    latent = torch.zeros(1, 6, requires_grad=True)
    optimizer = torch.optim.SGD([latent], lr=lr, momentum=0.9)
    for _ in range(n_iter):
        features = extractor.run(generator(latent))
        loss = sum(nn.functional.mse_loss(features[k], target[k]) for k in layers)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
#+     for handle in extractor.handles:
#+         handle.remove()
    return generator(latent).detach()


torch.manual_seed(115)
encoder = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.ReLU())
generator = nn.Sequential(nn.Linear(6, 64), nn.Tanh(), nn.Unflatten(1, (1, 8, 8)))
encoder.requires_grad_(False)
generator.requires_grad_(False)
images = []
for subject in range(5):
    with torch.no_grad():
        seen = torch.rand(1, 1, 8, 8)
        first = encoder[1](encoder[0](seen))
        decoded = {"1": first, "3": encoder[3](encoder[2](first))}
    images.append(reconstruct(decoded, encoder, generator, ["1", "3"]))
print(len(images), len(encoder[1]._forward_hooks))
