# EXPECT: a hundred thousand notes on an error are cut
# OUTCOME: failed | exceeded
# CONTROL: silent: it is the run's own text
held = ValueError('noted')
for n in range(100_000): held.add_note('\x1b[31m' + 'n' * 500)
held.__notes__ += [None, 3, object()]
raise held
