"""What is measured of the points of one run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nearkin.plane.points import Points
from nearkin.plane.precision import rank
from nearkin.plane.shape import rank_correlation, shape
from nearkin.train.folder import RunFolder


def measures(found: Points, run: Path, seed: int) -> dict[str, Any]:
    """The measures of a run's points, plain numbers all.

    - ``map``, ``recall@1``: by the distance of raw vectors; ``map_by_angle``: by their direction from the origin;
    - ``tightness``, ``ratio``, ``radius``: how much room the classes take, see `nearkin.plane.shape`;
    - ``follows_variance``: rank correlation, over the ten digits, of that room with the variance of the images.
    """
    ranking = rank(found.places, found.labels)
    classes = shape(found.places, found.labels, len(found.variance))
    return {
        "seed": seed,
        "map": ranking.mean,
        "map_by_angle": rank(found.places, found.labels, by_angle=True).mean,
        "recall@1": ranking.recall,
        "tightness": classes.tightness,
        "ratio": classes.ratio,
        "follows_variance": rank_correlation(classes.radius, found.variance),
        "radius": [round(value, 6) for value in classes.radius.tolist()],
        "map_of_class": [
            float(ranking.average_precision[found.labels == label].nanmean()) for label in range(len(found.variance))
        ],
        "seconds": RunFolder(run).metrics()["seconds"],
    }
