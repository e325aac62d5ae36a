"""The documents, and what writes the generated part of them."""
