# EXPECT: a source that nests without end is refused by the compiler
# OUTCOME: failed | exceeded memory
# CONTROL: silent: it harms its own process only
compile('(' * 200_000 + ')' * 200_000, 'x', 'eval')
