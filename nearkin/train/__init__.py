"""Training: settings, the loop, and the commands that use its runs."""
