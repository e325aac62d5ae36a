# EXPECT: a tensor that is shared by name does not stay, nor does who minds it
# OUTCOME: failed | succeeded
# CONTROL: breaches
import torch, torch.multiprocessing as mp
mp.set_sharing_strategy('file_system')
x = torch.ones(1 << 16); handle = x.untyped_storage()._share_filename_cpu_()
import os
os._exit(0)
