# EXPECT: no control of the process changes who may look at it, who inherits its children, what its memory is
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes
l = ctypes.CDLL(None, use_errno=True)
for option, *words in ((0x59616d61, -1), (36, 1), (35, 8, 0), (29, 1), (41, 1), (57, 1), (62, 1, 0, 1), (8, 1), (28, 1), (26, 1), (33, 0), (53, 0, 0), (65, 1), (70, 1), (71, 0)):
    print('CANARY' if l.prctl(option, *words, *[0] * (4 - len(words))) >= 0 else ctypes.get_errno(), option)
