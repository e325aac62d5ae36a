# EXPECT: a hook that raises at every turn spoils its own run only
# OUTCOME: failed | succeeded | exceeded
# CONTROL: silent: it harms its own run only
import sys
def hook(*_): raise RuntimeError('no')
sys.settrace(lambda *_: hook); sys.addaudithook(lambda name, _: hook() if name == 'open' else None)
open('/dev/null')
