"""The playground: a program is written, run and read on one page."""
