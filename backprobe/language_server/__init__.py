"""The language server, `backprobe lsp`; importing this package loads neither pygls nor torch."""
