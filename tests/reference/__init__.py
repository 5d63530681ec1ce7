"""Independent float64 derivations of every loss, miner, pair weight and metric, in plain loops."""
