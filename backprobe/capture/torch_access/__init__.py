"""How capture reads and patches torch: private names, tensor memory, gradient statistics, compiled core, fence."""
