"""How the engine reads and patches torch: private names, tensor memory, statistics, the compiled core, the fence."""
