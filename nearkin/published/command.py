"""The command ``nearkin published``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nearkin import checkpoint, checks, config
from nearkin.published.export import save_csv, save_json
from nearkin.published.find import facts as find
from nearkin.published.find import table_of, tables
from nearkin.published.show import listing, table_text


@dataclass(frozen=True)
class Published:
    """Flags of ``nearkin published``."""

    source: str = config.option(
        "",
        "ranked_list, ranked_list_poster, deep_dive, unified_view or nra; all if not given",
        positional=True,
        optional=True,
    )
    table: str = config.option("", "number of a table of that source", positional=True, optional=True)
    data: str = config.option("", "only this data set: cub200, cars196, sop or inshop")
    loss: str = config.option("", "only this loss, by its name in nearkin losses")
    network: str = config.option("", "only this network: resnet50, bn_inception, googlenet or resnet50_v2")
    dim: int = config.option(0, "only embeddings of this size; 0: any", checks.Limit(low=0, whole=True))
    protocol: str = config.option(
        "", "only this way to choose the model: test_feedback, fixed_validation, cross_validation or unknown"
    )
    metric: str = config.option("", "only this metric, such as recall@1 or nmi")
    flagged: bool = config.option(False, "only numbers that are doubtful, impossible or misprinted")
    json: str = config.option("", "write the numbers into this JSON file instead of showing them")
    csv: str = config.option("", "write the numbers into this CSV file instead of showing them")

    def __post_init__(self) -> None:
        config.check("published", self)


def run(settings: Published) -> None:
    """Show the published results: every results table of the papers nearkin implements, as it was printed.

    nearkin published                            lists the tables
    nearkin published deep_dive 6                shows one
    nearkin published --loss ranked_list --data cub200 --metric recall@1
    nearkin published --csv facts.csv            writes all numbers into a file
    """
    for name, path in (("json", settings.json), ("csv", settings.csv)):
        if path:
            checkpoint.check_file(name, Path(path))
    filters = {
        name: getattr(settings, name) or None for name in ("data", "loss", "network", "dim", "protocol", "metric")
    }
    found = find(settings.source or None, settings.table or None, **filters)
    if settings.flagged:
        found = [fact for fact in found if fact.flag]
    asked = {name: value for name, value in filters.items() if value} | ({"flagged": True} if settings.flagged else {})
    if not found:
        words = ", ".join(f"{name} {value}" for name, value in asked.items())
        raise ValueError(f"published: there must be a number that fits, got none for {words}; leave a filter out.")
    if settings.json or settings.csv:
        if settings.json:
            save_json(settings.json, found)
        if settings.csv:
            save_csv(settings.csv, found)
        print(f"{len(found):,} numbers written to {' and '.join(filter(None, (settings.json, settings.csv)))}.")
    elif asked or settings.table:
        shown = dict.fromkeys((fact.source, fact.table) for fact in found)
        for place, key in enumerate(shown):
            print("\n\n" * (place > 0), end="")
            own = [fact for fact in found if (fact.source, fact.table) == key]
            print(table_text(table_of(*key), own, notes=bool(settings.table)))
    else:
        print(listing(tables(settings.source or None)))
        print("\nShow one with: nearkin published SOURCE TABLE")
