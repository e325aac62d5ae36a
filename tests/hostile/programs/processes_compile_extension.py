# EXPECT: no compiler is started by torch, no library is loaded from a folder of one's own
# OUTCOME: succeeded | failed | exceeded cpu
# CONTROL: breaches
import torch, os, traceback
def t(name, f):
    try: print('CANARY' if f() else 'no', name)
    except BaseException as e: print(name, type(e).__name__, str(e)[:150])
def ext():
    from torch.utils.cpp_extension import load_inline
    m = load_inline('x', 'int f(){return 7;}', functions=['f']); return m.f() == 7
def ind():
    f = torch.compile(lambda x: (x.sin() * 2).sum()); return False if f(torch.ones(4)) is None else False
def own():
    import ctypes, shutil
    src=[l.split()[-1] for l in open('/proc/self/maps') if 'libc.so' in l][0]
    shutil.copy(src, '/tmp/l.so'); ctypes.CDLL('/tmp/l.so'); return True
t('cpp_extension', ext); t('inductor', ind); t('own library', own)
