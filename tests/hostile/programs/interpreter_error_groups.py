# EXPECT: errors in groups in groups in groups are cut
# OUTCOME: failed | exceeded
# CONTROL: silent: it is the run's own text
held = ValueError('innermost')
for n in range(100_000): held = ExceptionGroup('g' * 50, [held, KeyError(n)])
raise held
