# EXPECT: pickles, packages and archives get no further than the program that loads them
# OUTCOME: succeeded | failed
# CONTROL: breaches
import torch, io, os, pickle, zipfile
class E:
    def __reduce__(self): return (os.system, ("cat /etc/passwd",))
b = io.BytesIO(); torch.save(E(), b); b.seek(0)
try: print('CANARY' if torch.load(b, weights_only=False) == 0 else 'ran nothing')
except BaseException as e: print(type(e).__name__, e)
z = io.BytesIO()
with zipfile.ZipFile(z, 'w', zipfile.ZIP_DEFLATED) as f: f.writestr('a/data.pkl', b'\0' * (200 << 20))
z.seek(0)
try: torch.load(z, weights_only=False)
except BaseException as e: print(type(e).__name__, str(e)[:100])
