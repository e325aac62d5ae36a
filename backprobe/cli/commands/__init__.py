"""The commands `run`, `watch`, `show`, `explain`, `rules`, `submit`, `runs`, `compare`; and those of plug-ins."""
