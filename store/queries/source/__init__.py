"""Source lines, output, and which runs a rule found something in."""
