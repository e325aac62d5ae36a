"""The user's source: parsed, rewritten with taps, and described site by site."""
