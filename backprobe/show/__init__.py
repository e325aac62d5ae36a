"""Records and findings as text, JSON and pictures. One renderer per file; each is a pure function."""
