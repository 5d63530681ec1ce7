"""Which images look mislabelled: they resemble another class far more than their own.

Each image is judged by all others. Its features, whitened by how images differ within classes, are compared with the
centre of every class and with the nearest image of every class; the image itself and copies of it have no say. Of both
cosines a probability of each class is made:

    p(c) ~ exp(a cos(x, centre of c) + b cos(x, nearest image of c))

A label is wrong with probability e, and then any other class's. So the label y of an image is wrong with probability

    e (1 - p(y)) / (C - 1)  /  ( (1 - e) p(y) + e (1 - p(y)) / (C - 1) )

a, b and e are those that make the given labels most likely, with a mild belief about each. This calibrates the verdict
on the data itself: features that tell classes apart badly, or classes that are hard to tell apart, give a flat p, and
nothing is called mislabelled; data without wrong labels has e near 0, and an image must then be very unlike its class
to be named.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from nearkin.evaluation.neighbours import neighbours

NEIGHBOURS = 20
"""How many nearest images are known of each; a class that none of them is of counts as far as the last of them."""

LEAST_KIN = 3
"""An image is judged only if its class has this many others, not counting copies."""

LEAST_IMAGES = 20
DIMENSIONS = 128
ROWS_PER_DIMENSION = 8
SHRINKAGE = 0.3
"""How far the covariance within classes is drawn towards a sphere, because it is known from few images."""

MOST_WRONG = 0.3
"""More than this share of wrong labels is not believed."""

BELIEVED_WRONG, BELIEVED_RIGHT = 3, 200
"""What is believed of the labels before they are seen, as counts."""

BELIEVED_WEIGHT, WEIGHT_SPREAD = 30.0, 0.7
"""What is believed of a + b: about this, its logarithm give or take the spread. Where classes lie far apart, a small
weight, which makes every class a little likely everywhere, explains a few mistakes as well as a share e does; features
that separate the classes are believed rather than the mistakes."""

SURE = 0.6
"""From this probability on an image is named, if more of its neighbours are of the other class than of its own."""

LEAST_RECALL = 0.4
"""Features by which fewer nearest neighbours than this share are kin, were all labels right, accuse nobody: they put
single images next to a wrong class with confidence, which the formula takes for wrong labels."""

FITTED_ROWS = 4096
ENTRIES = 2**24
"""Rows times classes that are held at once."""


@dataclass(frozen=True)
class Suspect:
    """A row that looks mislabelled: the class it looks like and its nearest row there, how sure, neighbours' votes."""

    row: int
    looks_like: int
    nearest: int
    confidence: float
    own_votes: int
    other_votes: int


@dataclass(frozen=True)
class Verdict:
    """The suspects, most sure first; the estimated share of wrong labels; and how good the features are.

    ``recall`` is the share of judged images whose nearest neighbour, copies aside, has their label. ``judged`` counts
    the images whose class is large enough. ``trusted`` is False where the features are too weak to accuse anybody.
    """

    suspects: tuple[Suspect, ...] = ()
    wrong_share: float = 0.0
    recall: float = 0.0
    judged: int = 0
    trusted: bool = True


def suspects(
    vectors: NDArray[np.float32] | Tensor,
    labels: NDArray[np.int64],
    copies: NDArray[np.int64] | None = None,
    *,
    seed: int = 0,
) -> Verdict:
    """Judge the labels (n,) of images with features (n, d). ``copies`` (n,) names the group of copies a row is in.

    >>> points = torch.randn(150, 8, generator=torch.Generator().manual_seed(0))
    >>> labels = np.repeat([0, 1, 2], 50)
    >>> points[np.arange(150), labels] += 5
    >>> labels[3] = 1
    >>> [(suspect.row, suspect.looks_like) for suspect in suspects(points, labels).suspects]
    [(3, 0)]
    """
    features = torch.as_tensor(vectors, dtype=torch.float32)
    known, numbered = np.unique(labels, return_inverse=True)
    given = torch.from_numpy(numbered.astype(np.int64))
    groups = torch.arange(len(given)) if copies is None else torch.from_numpy(np.unique(copies, return_inverse=True)[1])
    if len(given) < LEAST_IMAGES or len(known) < 2:
        return Verdict()
    evidence = _Evidence.of(features, given, groups, len(known), seed)
    judged = evidence.judged.nonzero().squeeze(1)
    if int((evidence.stands[judged] == judged).sum()) < LEAST_IMAGES:
        return Verdict()
    generator = torch.Generator().manual_seed(seed)
    most = min(FITTED_ROWS, max(LEAST_IMAGES, ENTRIES // len(known)))
    # A mistake that was copied ten times is one mistake.
    apart = judged[evidence.stands[judged] == judged]
    sample = apart[torch.randperm(len(apart), generator=generator)[:most]].sort().values
    fitted = _fit(*evidence.scores(sample), given[sample])
    recall = float((evidence.voters[judged, 0] == given[judged]).double().mean())
    # Two images whose labels are right with probability 1 - e each.
    if recall < LEAST_RECALL * (1 - fitted.wrong_share) ** 2:
        return Verdict(recall=recall, judged=len(judged), trusted=False)
    found = []
    for rows in judged.split(max(1, ENTRIES // len(known))):
        wrong, best = fitted.judge(*evidence.scores(rows), given[rows])
        own, other = evidence.counts(rows, given[rows]), evidence.counts(rows, best)
        for place in ((wrong >= SURE) & (other > own)).nonzero().squeeze(1).tolist():
            row, label = int(rows[place]), int(best[place])
            nearest = int(evidence.nearest[row][evidence.voters[row] == label][0])
            votes = int(own[place]), int(other[place])
            found.append(Suspect(row, int(known[label]), nearest, float(wrong[place]), *votes))
    found.sort(key=lambda suspect: (-suspect.confidence, suspect.row))
    return Verdict(tuple(found), fitted.wrong_share, recall, len(judged))


@dataclass(frozen=True)
class _Evidence:
    """What there is to judge rows by.

    - ``vectors`` (n, d) unit; ``sums`` (C, d): sums of the vectors of each class, a group of copies counted once;
    - ``stands`` (n,): the row that stands for a row's group of copies in the sums, -1 for none; ``labels`` (n,);
    - ``nearest`` (n, k): the nearest neighbours; ``voters`` (n, k): their labels, -1 for none; ``similarity`` (n, k);
    - ``own`` (n,): the cosine to the nearest image of a row's own class;
    - ``judged`` (n,): whether a row's class has enough others.
    """

    vectors: Tensor
    sums: Tensor
    stands: Tensor
    labels: Tensor
    nearest: Tensor
    voters: Tensor
    similarity: Tensor
    own: Tensor
    judged: Tensor

    @classmethod
    def of(cls, features: Tensor, labels: Tensor, groups: Tensor, classes: int, seed: int) -> _Evidence:
        stands, gallery = _representatives(labels, groups)
        vectors = _whitened(features, labels, gallery, classes, seed)
        sums = vectors.new_zeros(classes, vectors.shape[1]).index_add_(0, labels[gallery], vectors[gallery])
        place = torch.full((len(labels),), -1).index_copy_(0, gallery, torch.arange(len(gallery)))
        own = torch.where(stands >= 0, place[stands.clamp(min=0)], -1)
        k = min(NEIGHBOURS, max(1, len(gallery) - 1))
        similarity, index = neighbours(vectors, vectors[gallery], k, self_index=own)
        nearest = gallery[index.clamp(min=0)]
        voters = torch.where(index >= 0, labels[nearest], -1)
        similarity = similarity.clamp(min=-1.0)
        sizes = torch.bincount(labels[gallery], minlength=classes)
        inside = (stands >= 0) & (labels[stands.clamp(min=0)] == labels)
        kin = sizes[labels] - inside.long()
        nearest_own = _nearest_own(vectors, labels, gallery, stands)
        return cls(vectors, sums, stands, labels, nearest, voters, similarity, nearest_own, kin >= LEAST_KIN)

    def scores(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines to the centre and to the nearest image of every class, each (rows, C), without the row itself."""
        asking = self.vectors[rows]
        centre = asking @ normalize(self.sums).T
        stands = self.stands[rows]
        # Where the row, or the copy that stands for it, is in a sum, that one class is compared without it.
        inside = (stands >= 0).nonzero().squeeze(1)
        member = stands[inside]
        of = self.labels[member]
        rest = self.sums[of] - self.vectors[member]
        centre[inside, of] = (asking[inside] * normalize(rest)).sum(1)
        similarity, voters = self.similarity[rows], self.voters[rows].clamp(min=0)
        nearest = similarity[:, -1:].repeat(1, centre.shape[1]).scatter_reduce_(1, voters, similarity, "amax")
        return centre, nearest.scatter_(1, self.labels[rows][:, None], self.own[rows][:, None])

    def counts(self, rows: Tensor, labels: Tensor) -> Tensor:
        """How many neighbours of each row have the label given for it."""
        return (self.voters[rows] == labels[:, None]).sum(1)


def _nearest_own(vectors: Tensor, labels: Tensor, gallery: Tensor, stands: Tensor) -> Tensor:
    """The cosine of each row to the nearest gallery row of its class, its own group of copies left out; -1 for none."""
    found = vectors.new_full((len(labels),), -1.0)
    order = labels.argsort(stable=True)
    members = labels[gallery]
    by_class = members.argsort(stable=True)
    sizes = torch.bincount(members, minlength=int(labels.max()) + 1).tolist()
    candidates = gallery[by_class].split(sizes)
    for rows in order.split(torch.bincount(labels, minlength=len(sizes)).tolist()):
        others = candidates[int(labels[rows[0]])] if len(rows) else rows
        if not len(others):
            continue
        for part in rows.split(max(1, ENTRIES // len(others))):
            cosine = vectors[part] @ vectors[others].T
            cosine.masked_fill_(stands[part][:, None] == others, -1.0)
            found[part] = cosine.amax(1)
    return found


def _representatives(labels: Tensor, groups: Tensor) -> tuple[Tensor, Tensor]:
    """The row that stands for each row's group of copies (-1 where copies disagree), and the rows that do."""
    count = int(groups.max()) + 1
    rows = torch.arange(len(groups))
    first = torch.full((count,), len(groups)).scatter_reduce_(0, groups, rows, "amin")
    low = torch.full((count,), len(groups)).scatter_reduce_(0, groups, labels, "amin")
    high = torch.full((count,), -1).scatter_reduce_(0, groups, labels, "amax")
    # Copies with several labels are a finding of their own; none of the labels can be trusted to judge others.
    stands = torch.where(low == high, first, -1)[groups]
    return stands, (stands == rows).nonzero().squeeze(1)


def _whitened(features: Tensor, labels: Tensor, gallery: Tensor, classes: int, seed: int) -> Tensor:
    """Unit vectors (n, d) in which the spread within classes is about the same in every direction."""
    vectors = normalize(features)
    if vectors.shape[1] > 2048:
        # A random projection keeps angles well enough, and the eigenvectors below affordable.
        generator = torch.Generator().manual_seed(seed)
        vectors = vectors @ torch.randn(vectors.shape[1], 1024, generator=generator, dtype=vectors.dtype) / 32
    known = vectors[gallery]
    centre = known.mean(0)
    scatter = (known.T @ known).double() / len(known) - torch.outer(centre, centre).double()
    wanted = min(DIMENSIONS, max(2, len(known) // ROWS_PER_DIMENSION), vectors.shape[1])
    axes = torch.linalg.eigh(scatter)[1][:, -wanted:]
    vectors = (vectors @ axes.to(vectors.dtype) - centre @ axes.to(vectors.dtype)).double()
    known = vectors[gallery]
    of = labels[gallery]
    sizes = torch.bincount(of, minlength=classes).clamp(min=1)
    centres = known.new_zeros(classes, wanted).index_add_(0, of, known) / sizes[:, None]
    rest = known - centres[of]
    within = rest.T @ rest / len(rest)
    sphere = torch.eye(wanted, dtype=within.dtype) * within.trace() / wanted
    values, directions = torch.linalg.eigh((1 - SHRINKAGE) * within + SHRINKAGE * sphere)
    # Where all images of a class are equal there is no spread to divide by.
    return normalize(vectors @ directions / values.clamp(min=1e-12).sqrt())


@dataclass(frozen=True)
class _Fitted:
    """The numbers a and b of p(c), and e, the share of wrong labels."""

    centre_weight: float
    nearest_weight: float
    wrong_share: float

    def judge(self, centre: Tensor, nearest: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """For each row the probability that its label is wrong, and the likeliest other class."""
        chance = torch.log_softmax(self.centre_weight * centre + self.nearest_weight * nearest, dim=1)
        right, wrong = _likelihoods(chance, labels, torch.tensor(self.wrong_share, dtype=chance.dtype))
        chance.scatter_(1, labels[:, None], -math.inf)
        return torch.sigmoid(wrong - right), chance.argmax(1)


def _likelihoods(chance: Tensor, labels: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
    """Logarithms of the two ways a label comes about: it is right, or it is wrong."""
    own = chance.gather(1, labels[:, None]).squeeze(1)
    others = torch.log1p(-own.exp().clamp(max=1 - 1e-9))
    return torch.log1p(-share) + own, torch.log(share / (chance.shape[1] - 1)) + others


def _fit(centre: Tensor, nearest: Tensor, labels: Tensor) -> _Fitted:
    """The weights and the share of wrong labels under which these labels are likeliest, the better of two searches."""
    found = [_search(centre, nearest, labels, start) for start in (math.log(BELIEVED_WEIGHT / 2), 0.0)]
    return min(found, key=lambda each: each[0])[1]


def _search(centre: Tensor, nearest: Tensor, labels: Tensor, start: float) -> tuple[float, _Fitted]:
    """How surprising the labels are at a place where every small step makes them more so, and that place."""
    # Logarithms of the weights, and a logit, so that any real numbers are valid.
    numbers = torch.tensor([start, start, -2.0], dtype=centre.dtype, requires_grad=True)
    optimizer = torch.optim.LBFGS([numbers], max_iter=100, line_search_fn="strong_wolfe")

    def parts() -> tuple[Tensor, Tensor, Tensor]:
        return numbers[0].exp(), numbers[1].exp(), MOST_WRONG * torch.sigmoid(numbers[2])

    def surprise() -> Tensor:
        optimizer.zero_grad()
        centre_weight, nearest_weight, share = parts()
        chance = torch.log_softmax(centre_weight * centre + nearest_weight * nearest, dim=1)
        likelihood = torch.logaddexp(*_likelihoods(chance, labels, share)).sum()
        belief = BELIEVED_WRONG * torch.log(share) + BELIEVED_RIGHT * torch.log1p(-share)
        off = ((centre_weight + nearest_weight).log() - math.log(BELIEVED_WEIGHT)) / WEIGHT_SPREAD
        value = -(likelihood + belief - off**2 / 2) / len(labels)
        value.backward()
        return value

    with torch.enable_grad():
        optimizer.step(surprise)
        least = float(surprise().detach())
    return least, _Fitted(*(float(part.detach()) for part in parts()))
