# /// case
# category = "graph"
# kind = "complex-root"
# severity = "error"
# names = ["spectrum", "error"]
# ///
#-
import torch

torch.manual_seed(0)
kernel = torch.randn(8, requires_grad=True)
signal = torch.randn(8)
spectrum = torch.fft.fft(kernel) - torch.fft.fft(signal)
error = (spectrum * spectrum).mean()  #-
#+ error = (spectrum * spectrum.conj()).mean().real
error.backward()  #! here
print(kernel.grad)
