"""Search for settings on validation classes, as many trials for every loss; the test set is never looked at."""
