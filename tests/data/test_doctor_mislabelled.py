"""The search for mislabelled images: precision and recall on known mistakes, and the formula in plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from nearkin.data import glyphs
from nearkin.data.doctor import mislabelled
from nearkin.data.doctor.mislabelled import Verdict, suspects
from nearkin.data.doctor.picture import Wanted, look


def classes_in_space(
    classes: int, images: int, apart: float, seed: int, dim: int = 64
) -> tuple[np.ndarray, np.ndarray]:
    """Normal clouds around random centres; the nearest neighbour is of the right class the more the further apart."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(classes, dim)) * apart
    labels = np.repeat(np.arange(classes), images)
    # As with real features, some directions vary within classes far more than others.
    spread = np.exp(random.normal(size=dim) * 0.7)
    return (centres[labels] + random.normal(size=(len(labels), dim)) * spread).astype(np.float32), labels


def with_mistakes(labels: np.ndarray, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    classes = int(labels.max()) + 1
    wrong = random.random(len(labels)) < share
    given = labels.copy()
    given[wrong] = (given[wrong] + random.integers(1, classes, int(wrong.sum()))) % classes
    return given, wrong


def scores(verdict: Verdict, wrong: np.ndarray) -> tuple[float, float]:
    named = np.array([suspect.row for suspect in verdict.suspects], int)
    return float(wrong[named].mean()) if len(named) else 1.0, float(wrong[named].sum() / wrong.sum())


@pytest.mark.parametrize("seed", range(3))
def test_three_in_a_hundred_wrong_labels(seed: int) -> None:
    """Features as good as those of a pretrained network on birds: nine in ten named are wrong, and most are found."""
    vectors, labels = classes_in_space(25, 40, 0.5, seed)
    given, wrong = with_mistakes(labels, 0.03, seed)
    verdict = suspects(vectors, given)
    assert 0.5 < verdict.recall < 0.8
    precision, recall = scores(verdict, wrong)
    assert precision >= 0.9
    assert recall >= 0.6
    assert verdict.wrong_share == pytest.approx(wrong.mean(), abs=0.015)
    right = [suspect.looks_like == labels[suspect.row] for suspect in verdict.suspects if wrong[suspect.row]]
    assert np.mean(right) > 0.8


@pytest.mark.parametrize("apart", [0.3, 0.62, 1.5])
def test_right_labels_are_left_alone(apart: float) -> None:
    """At most two in a thousand, whether classes are far apart or can hardly be told."""
    for seed in range(3):
        vectors, labels = classes_in_space(25, 40, apart, seed)
        assert len(suspects(vectors, labels).suspects) <= 2


def test_features_that_say_nothing_accuse_nobody() -> None:
    vectors, labels = classes_in_space(25, 40, 0.0, 0)
    given, _ = with_mistakes(labels, 0.03, 0)
    assert suspects(vectors, given).suspects == ()


def test_features_that_misplace_single_images_accuse_nobody() -> None:
    """Characters in plain descriptions: a third lies among its class, others firmly elsewhere; all labels are right."""
    table = glyphs(classes=60, images=30, seed=2).train
    seen = [look(np.asarray(image), Wanted(describe=True))[1] for image in table.images]
    verdict = suspects(np.stack([each.features for each in seen if each is not None]), table.labels)
    assert 0.25 < verdict.recall < 0.4 and verdict.judged == len(table)
    assert verdict.suspects == () and not verdict.trusted


def test_many_wrong_labels_do_not_silence_good_features() -> None:
    vectors, labels = classes_in_space(25, 40, 0.45, 0)
    given, wrong = with_mistakes(labels, 0.15, 0)
    verdict = suspects(vectors, given)
    assert verdict.recall < 0.4 and verdict.trusted
    precision, recall = scores(verdict, wrong)
    assert precision >= 0.85 and recall >= 0.5


def test_classes_that_cannot_be_told_apart_accuse_nobody() -> None:
    """Fine-grained data: classes in pairs with one centre; an image looks like its twin class half of the time."""
    vectors, labels = classes_in_space(12, 60, 1.0, 0)
    twins = 2 * labels + np.arange(len(labels)) % 2
    verdict = suspects(vectors, twins)
    assert verdict.recall < 0.65
    assert verdict.suspects == ()


def test_classes_of_several_shapes() -> None:
    """A class of several clouds, whose centre is nowhere: the nearest image speaks."""
    vectors, clouds = classes_in_space(24, 40, 1.0, 0)
    labels = clouds % 6
    given, wrong = with_mistakes(labels, 0.03, 1)
    precision, recall = scores(suspects(vectors, given), wrong)
    assert precision >= 0.85 and recall >= 0.8


def test_copies_have_no_say() -> None:
    """Ten copies of a mislabelled image would each vouch for the others."""
    vectors, labels = classes_in_space(10, 40, 1.2, 0)
    row = 6
    many = np.concatenate([vectors, np.repeat(vectors[row : row + 1], 10, 0)])
    given = np.concatenate([labels, np.full(10, 7)])
    given[row] = 7
    groups = np.arange(len(given))
    groups[len(labels) :] = row
    alone = {suspect.row for suspect in suspects(many, given).suspects}
    assert not alone & {row, *range(400, 410)}
    known = {suspect.row for suspect in suspects(many, given, groups).suspects}
    assert known == {row, *range(400, 410)}


def test_copies_with_two_labels_are_judged_but_do_not_judge() -> None:
    vectors, labels = classes_in_space(10, 40, 1.2, 0)
    vectors[77] = vectors[5]  # row 77 is of class 1, and now shows a picture of class 0
    groups = np.arange(400)
    groups[77] = 5
    verdict = suspects(vectors, labels, groups)
    assert [(suspect.row, suspect.looks_like) for suspect in verdict.suspects] == [(77, 0)]
    assert verdict.suspects[0].nearest not in (5, 77)


def test_small_classes_are_not_judged() -> None:
    vectors, labels = classes_in_space(8, 30, 1.2, 0)
    extra = np.concatenate(
        [vectors, vectors[:3] + 0.01]
    )  # three images that look like class 0, in a class of their own
    given = np.concatenate([labels, np.full(3, 8)])
    verdict = suspects(extra, given)
    assert verdict.judged == 240
    assert not {suspect.row for suspect in verdict.suspects} & {240, 241, 242}


@pytest.mark.parametrize(("rows", "classes"), [(0, 1), (5, 2), (60, 1), (60, 60)])
def test_too_little_to_judge_by(rows: int, classes: int) -> None:
    vectors = np.random.default_rng(0).normal(size=(rows, 8)).astype(np.float32)
    assert suspects(vectors, np.arange(rows) % classes) == Verdict()


@pytest.mark.parametrize("kind", ["zeros", "equal", "one dimension", "wide"])
def test_odd_features(kind: str) -> None:
    random = np.random.default_rng(0)
    labels = np.repeat(np.arange(4), 10)
    vectors = {
        "zeros": np.zeros((40, 8)),
        "equal": np.ones((40, 8)),
        "one dimension": random.normal(size=(40, 1)),
        "wide": random.normal(size=(40, 3000)),
    }[kind].astype(np.float32)
    verdict = suspects(vectors, labels)
    assert verdict.judged == 40 and verdict.suspects == ()


def test_the_same_in_any_order_of_rows() -> None:
    vectors, labels = classes_in_space(10, 40, 0.8, 0)
    given, _ = with_mistakes(labels, 0.05, 0)
    order = np.random.default_rng(1).permutation(len(given))
    one = {suspect.row: suspect.confidence for suspect in suspects(vectors, given).suspects}
    other = {int(order[suspect.row]): suspect.confidence for suspect in suspects(vectors[order], given[order]).suspects}
    assert one.keys() == other.keys()
    assert all(one[row] == pytest.approx(other[row], abs=1e-3) for row in one)


def test_the_sample_for_the_fit_is_drawn_from_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mislabelled, "FITTED_ROWS", 100)
    vectors, labels = classes_in_space(10, 40, 0.8, 0)
    given, _ = with_mistakes(labels, 0.05, 0)
    state = torch.random.get_rng_state()
    assert suspects(vectors, given, seed=1) == suspects(vectors, given, seed=1)
    assert suspects(vectors, given, seed=1) != suspects(vectors, given, seed=2)
    assert torch.equal(torch.random.get_rng_state(), state)


# ------------------------------------------------------------------------------------------ the formula


def test_scores_are_those_of_all_other_images() -> None:
    """Centres and nearest images in plain loops, with one group of copies."""
    vectors, labels = classes_in_space(3, 7, 1.0, 0, dim=5)
    groups = np.arange(21)
    groups[9] = 8
    evidence = mislabelled._Evidence.of(
        torch.as_tensor(vectors), torch.as_tensor(labels), torch.as_tensor(groups), 3, seed=0
    )
    points = evidence.vectors.numpy()
    centre, nearest = evidence.scores(torch.arange(21))
    for row in range(21):
        for label in range(3):
            others = [
                points[other]
                for other in range(21)
                if labels[other] == label and groups[other] != groups[row] and other != 9
            ]
            middle = np.sum(others, axis=0)
            assert centre[row, label] == pytest.approx(points[row] @ middle / np.linalg.norm(middle), abs=1e-9)
            assert nearest[row, label] == pytest.approx(max(points[row] @ other for other in others), abs=1e-9)


def test_the_probability_of_a_wrong_label() -> None:
    centre = torch.tensor([[0.9, 0.1, -0.3], [0.2, 0.7, 0.1]], dtype=torch.float64)
    nearest = torch.tensor([[0.8, 0.3, 0.0], [0.1, 0.6, 0.5]], dtype=torch.float64)
    fitted = mislabelled._Fitted(6.0, 2.0, 0.02)
    found, best = fitted.judge(centre, nearest, torch.tensor([2, 1]))
    for row, label in enumerate((2, 1)):
        weights = [math.exp(6 * float(centre[row, c]) + 2 * float(nearest[row, c])) for c in range(3)]
        own = weights[label] / sum(weights)
        wrong = 0.02 * (1 - own) / 2
        assert float(found[row]) == pytest.approx(wrong / (0.98 * own + wrong), rel=1e-9)
    assert best.tolist() == [0, 2]


def test_the_fit_makes_the_labels_likeliest() -> None:
    """No step away from the fitted numbers makes labels and belief likelier."""
    vectors, labels = classes_in_space(6, 30, 0.9, 0, dim=16)
    given, _ = with_mistakes(labels, 0.08, 0)
    count = len(given)
    evidence = mislabelled._Evidence.of(
        torch.as_tensor(vectors), torch.as_tensor(given), torch.arange(count), 6, seed=0
    )
    scores_of = evidence.scores(torch.arange(count))
    fitted = mislabelled._fit(*scores_of, torch.as_tensor(given))

    def likelihood(centre_weight: float, nearest_weight: float, share: float) -> float:
        total = 3 * math.log(share) + 200 * math.log(1 - share)
        total -= (math.log(centre_weight + nearest_weight) - math.log(30)) ** 2 / (2 * 0.7**2)
        for row in range(count):
            weights = np.exp(centre_weight * scores_of[0][row].numpy() + nearest_weight * scores_of[1][row].numpy())
            own = float(weights[given[row]] / weights.sum())
            total += math.log((1 - share) * own + share * (1 - own) / 5)
        return total

    numbers = (fitted.centre_weight, fitted.nearest_weight, fitted.wrong_share)
    best = likelihood(*numbers)
    for place in range(3):
        for factor in (0.8, 0.95, 1.05, 1.25):
            changed = [number * (factor if place == which else 1) for which, number in enumerate(numbers)]
            assert likelihood(*changed) < best + 1e-3
