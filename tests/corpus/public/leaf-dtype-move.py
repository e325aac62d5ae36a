# /// case
# title = "A tensor made with requires_grad=True is moved (dtype/device) and .grad is read on the moved copy"
# category = "leaf-nonleaf"
# kind = "grad-read-on-nonleaf"
# severity = "warning"
# names = ["pixels"]
# difficulty = "easy"
# symptom = "silent: UserWarning and pixels.grad is None"
# symptom_check = "grad_map is None"
# warns = "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed"
# cause = ".to()/.cuda()/.double() is a differentiable op; the name now holds a non-leaf copy, the gradient lands in the unnamed original"
# fix = "make the tensor with its final dtype/device, then requires_grad_(); or keep a name for the leaf"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/13112" },
#     { url = "https://github.com/pytorch/pytorch/issues/22860" },
#     { url = "https://github.com/Maghoumi/pytorch-softdtw-cuda/issues/25" },
# ]
# ///
import torch

torch.manual_seed(0)
pixels = torch.rand(4, 6, requires_grad=True).to(torch.float64)  #- here
#+ pixels = torch.rand(4, 6).to(torch.float64).requires_grad_()
kernel = torch.linspace(-1.0, 1.0, 6, dtype=torch.float64)

response = torch.tanh(pixels @ kernel)
energy = response.pow(2).sum()
energy.backward()

grad_map = pixels.grad  #! also
print("energy", energy.item())
print("sensitivity", grad_map)
