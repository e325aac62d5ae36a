"""A record and its findings as one HTML file that needs no server: readable without scripts, alive with them."""
