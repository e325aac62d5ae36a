"""Gradients that are missing, added up, cleared, zero, or changed on their way. Rules 2xx."""
