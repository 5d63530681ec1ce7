"""How long a test waits for what should come at once: only a fault, never a busy machine, makes it wait that long."""

PATIENCE = 120.0  # seconds
