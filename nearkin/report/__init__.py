"""The report of a benchmark: one page, figures and tables, made from results alone.

``write(read("bench/birds"), "report")`` is the whole of it; ``nearkin report`` is the same as a command.
"""

from nearkin.report.bench import Bench, read
from nearkin.report.write import write

__all__ = ["Bench", "read", "write"]
