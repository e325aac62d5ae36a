"""The web process: the REST API and the pages. It never imports torch, and never imports workers."""
