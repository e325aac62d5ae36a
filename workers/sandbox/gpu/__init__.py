"""One process for one run, with devices."""
