"""Where images lie from epoch to epoch, so that what moves on the page moved in the embedding.

The last epoch is laid out first. Each earlier one begins where the next one lies and moves as little as its own
neighbours ask for; then it is turned and mirrored onto the next as well as it fits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from nearkin.serve.plane import BLOCK, between, components, drawn

Vectors = NDArray[np.float32]
Places = NDArray[np.float64]
LANDMARKS = 1500
"""Fewer than on the map of the index: every epoch is laid out."""
EXAGGERATION = 1.5
"""Of t-SNE, whose own 12 would begin anew at every epoch; 1 would leave early epochs as tidy as the last one."""
STEPS = 400
ASKED = 2000


def places(epochs: Sequence[Callable[[], Vectors]], tell: Callable[[int, int], None]) -> NDArray[np.float32]:
    """Places (epochs, n, 2) of the same n images at every epoch, all within -1 ... 1."""
    found: list[Places] = []
    marks: Places | None = None
    for done, read in enumerate(reversed(epochs)):
        vectors = read()
        chosen = drawn(len(vectors), LANDMARKS)
        marks = laid_out(vectors[chosen], marks)
        placed = between(vectors, chosen, marks)
        # How far t-SNE spreads depends on how long it ran, not on the vectors; principal components say something by it.
        found.append(placed / max(float(np.sqrt((marks**2).mean())), 1e-12) if by_neighbours(len(chosen)) else placed)
        tell(done + 1, len(epochs))
    whole = np.stack(found[::-1])
    return np.asarray(whole / max(float(np.abs(whole).max(initial=0)), 1e-12), np.float32)


def laid_out(vectors: Vectors, after: Places | None) -> Places:
    """Places (n, 2) of an epoch, about 0, beginning with those of the epoch after it."""
    from nearkin.report.embedding import flat

    if after is None:
        found = np.asarray(flat(vectors))
    elif not by_neighbours(len(vectors)):
        found = components(vectors)
    else:
        from sklearn.manifold import TSNE

        near = min(30.0, (len(vectors) - 1) / 3)
        start = after.astype(np.float32)
        made = TSNE(
            2, init=start, perplexity=near, early_exaggeration=EXAGGERATION, max_iter=STEPS, random_state=0
        ).fit_transform(vectors)
        found = np.asarray(made, np.float64)
    found = found - found.mean(0)
    return found if after is None else onto(found, after)


def by_neighbours(count: int) -> bool:
    """Whether so many images are laid out by t-SNE, rather than by principal components."""
    from nearkin.report import embedding

    return embedding._method() == "t-SNE" and count >= 8


def onto(found: Places, wanted: Places) -> Places:
    """Places about 0 turned and mirrored so that they lie as near as they can to others; sizes stay.

    >>> square = np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, 0.0], [0.0, -2.0]])
    >>> bool(np.allclose(onto(square[:, ::-1], square), square))
    True
    """
    left, _, right = np.linalg.svd(found.T @ (wanted - wanted.mean(0)))
    return np.asarray(found @ (left @ right))


def recalls(
    vectors: Vectors, labels: NDArray[np.int64], classes: int, query: NDArray[np.bool_] | None = None
) -> NDArray[np.float32]:
    """Recall@1 of every class (classes,), nan for one that did not ask; at most 2,000 images ask.

    ``query``: which images ask, where the others are what is searched; None: all ask, each for the others.
    """
    rows = np.flatnonzero((labels >= 0) & (query if query is not None else True))
    rows = rows[drawn(len(rows), ASKED)]
    right, asked = np.zeros(classes), np.zeros(classes)
    for begin in range(0, len(rows) if len(vectors) > 1 else 0, BLOCK // 8):
        part = rows[begin : begin + BLOCK // 8]
        cosines = vectors[part] @ vectors.T
        cosines[np.arange(len(part)), part] = -np.inf
        if query is not None:
            cosines[:, query] = -np.inf
        np.add.at(right, labels[part], labels[cosines.argmax(1)] == labels[part])
        np.add.at(asked, labels[part], 1)
    return np.where(asked > 0, right / np.maximum(asked, 1), np.nan).astype(np.float32)
