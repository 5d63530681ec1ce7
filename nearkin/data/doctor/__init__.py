"""The doctor of a data set: what is wrong with its images and labels, in a table and on a contact sheet."""

from nearkin.data.doctor.examine import examine, examine_splits
from nearkin.data.doctor.findings import ClassCount, Finding, Findings, Place, read_json
from nearkin.data.doctor.kinds import KINDS, Kind

__all__ = [
    "KINDS",
    "ClassCount",
    "Finding",
    "Findings",
    "Kind",
    "Place",
    "examine",
    "examine_splits",
    "read_json",
]
