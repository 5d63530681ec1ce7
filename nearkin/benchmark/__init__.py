"""Many runs from one grid: losses x data sets x networks x sizes x protocols x seeds, each done once, none lost."""

from __future__ import annotations

from nearkin.benchmark.grid import Grid, read
from nearkin.benchmark.job import Job
from nearkin.benchmark.perform import perform
from nearkin.benchmark.state import State, rebuild, states

__all__ = ["Grid", "Job", "State", "perform", "read", "rebuild", "states"]
