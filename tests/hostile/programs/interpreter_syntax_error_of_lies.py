# EXPECT: a syntax error whose place is made up is told as it is, and cut
# OUTCOME: failed
# CONTROL: silent: it is the run's own text
made = SyntaxError('\x1b]0;x\x07' * 1000, ('/etc/passwd', 10 ** 30, -5, 'x' * 10 ** 6, 10 ** 30, -1))
vars(made)['print_file_and_line'] = True; made.filename = '/etc/passwd'; made.lineno = 1; made.text = None
raise made
