# /// case
# category = "wiring"
# kind = "step-without-gradient"
# severity = "warning"
# names = ["decoder_opt"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
encoder, decoder = nn.Linear(6, 3), nn.Linear(3, 6)
encoder_opt = torch.optim.Adam(encoder.parameters(), lr=1e-2)
decoder_opt = torch.optim.Adam(decoder.parameters(), lr=1e-2)
for x in torch.rand(3, 8, 6):
    z = encoder(x)
    code_loss = z.abs().mean()  #-
#+     code_loss = z.abs().mean() + (decoder(z) - x).pow(2).mean()
    encoder_opt.zero_grad()
    decoder_opt.zero_grad()
    code_loss.backward()  #! also
    encoder_opt.step()
    decoder_opt.step()  #! here
    print(code_loss.item())
