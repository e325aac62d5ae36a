# /// case
# title = "FGSM attack forgets requires_grad_() on the image"
# category = "requires-grad"
# kind = "input-missing-requires-grad"
# severity = "error"
# names = ["image"]
# difficulty = "easy"
# symptom = "AttributeError: 'NoneType' object has no attribute 'sign'"
# raises = "AttributeError"
# raises_message = "'NoneType' object has no attribute 'sign'"
# cause = "data tensors do not require grad by default, so image.grad stays None"
# fix = "image.requires_grad_() before the forward pass"
# evidence = [
#     { url = "https://github.com/archinetai/smart-pytorch/issues/5" },
#     { url = "https://github.com/NVlabs/tiny-cuda-nn/issues/77" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


def attack(victim, image, label, eps):
    image = image.clone()  #- also
#+     image = image.clone().requires_grad_(True)
    loss = F.cross_entropy(victim(image), label)
    victim.zero_grad()
    loss.backward()
    return (image + eps * image.grad.sign()).detach()  #! here


torch.manual_seed(7)
victim = nn.Sequential(nn.Flatten(), nn.Linear(49, 20), nn.ReLU(), nn.Linear(20, 4))
clean_img = torch.rand(3, 1, 7, 7)
truth = torch.tensor([0, 2, 3])
adv = attack(victim, clean_img, truth, eps=0.05)
print((adv - clean_img).abs().max())
