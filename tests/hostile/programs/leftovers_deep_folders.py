# EXPECT: folders in folders in folders do not stay, and delay nobody
# OUTCOME: failed
# CONTROL: silent: its folder is removed by a process of its own at every level
import os
for n in range(20_000): os.mkdir('d'); os.chdir('d')
