# EXPECT: finalizers that make work of themselves do not outlast the run
# OUTCOME: succeeded | exceeded | failed
# CONTROL: silent: it harms its own process only
class Again:
    def __del__(self): Again()
Again(); kept = [Again() for _ in range(3)]
