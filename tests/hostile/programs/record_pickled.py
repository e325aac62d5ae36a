# EXPECT: what would be code to a reader that trusts it is refused as what it is
# OUTCOME: failed record
# CONTROL: silent: the decoder is the same at every level
import marshal, os, pickle
class Attack:
    def __reduce__(self): return (exec, ("open('__CANARY_FILE__', 'a').write('unpickled')",))
for body in (pickle.dumps(Attack()), pickle.dumps(Attack(), 0), marshal.dumps(compile('1/0', 'x', 'exec')), b'PK\x03\x04' + pickle.dumps(Attack())):
    os.write(3, len(body).to_bytes(4, 'little') + body)
os._exit(0)
