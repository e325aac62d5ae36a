"""The warm process and its children: everything that runs beside or as the stranger's program."""
