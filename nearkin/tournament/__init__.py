"""Who wins, and is it more than chance: ranks, tests, intervals, groups that cannot be told apart, one verdict.

``settle(results.read(folder), folder)`` is the whole of it; the parts can be used alone on plain arrays.
"""

from nearkin.tournament.blocks import Block, complete
from nearkin.tournament.diagram import critical_difference_svg, intervals_svg, svg
from nearkin.tournament.experiment import Comparison, Experiment, experiments
from nearkin.tournament.friedman import Friedman, critical_difference, friedman
from nearkin.tournament.groups import groups, letters
from nearkin.tournament.intervals import Intervals, bootstrap
from nearkin.tournament.permutation import holm, sign_flip
from nearkin.tournament.printed import printed
from nearkin.tournament.ranks import Ranking, ranks
from nearkin.tournament.settle import TooFewError, judge, settle
from nearkin.tournament.show import shown
from nearkin.tournament.verdict import Standing, Verdict

__all__ = [
    "Block",
    "Comparison",
    "Experiment",
    "Friedman",
    "Intervals",
    "Ranking",
    "Standing",
    "TooFewError",
    "Verdict",
    "bootstrap",
    "complete",
    "critical_difference",
    "critical_difference_svg",
    "experiments",
    "friedman",
    "groups",
    "holm",
    "intervals_svg",
    "judge",
    "letters",
    "printed",
    "ranks",
    "settle",
    "shown",
    "sign_flip",
    "svg",
]
