"""The trainings behind the figure, each as the settings of a run.

The paper gives the data, the shape of the network, 20,000 steps, and a margin of 1 for triplet and lifted structure. It
leaves open the batch, the optimiser and the learning rate of this experiment; what stands here in their place is said in
docs/plane.md. All losses share everything but themselves, their optimiser and the digits in
their batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nearkin import checks
from nearkin.train.settings import Train


@dataclass(frozen=True)
class Variant:
    """A loss as the figure uses it: what stands above its panel, its name and settings, its optimiser, and how many digits
    make a batch of 80."""

    title: str
    loss: str
    settings: dict[str, Any]
    optimizer: str = "adam"
    classes: int = 10


# Raw vectors throughout. The first four are the paper's. Each has the optimiser and the batch that served it best on
# training images kept back, to within a point; but NRA has SGD, as its paper uses it elsewhere, though Adam's mean was
# higher, by less than two seeds of SGD differ: see docs/plane.md.
LOSSES: dict[str, Variant] = {
    "softmax": Variant("softmax cross-entropy", "softmax", {"normalized": False}),
    "triplet": Variant(
        "triplet, semihard",
        "triplet",
        {"distance": "euclidean", "normalize": False, "margin": 1.0, "miner": "semihard"},
    ),
    "lifted_structure": Variant("lifted structure", "lifted_structure", {"normalize": False, "margin": 1.0}),
    "nra": Variant("NRA", "nra", {"power": 4.0, "eps": 1e-4}, "sgd", 4),
    "nra_slack": Variant("NRA, range slack 0.1", "nra", {"power": 4.0, "eps": 1e-4, "range_slack": 0.1}, "sgd", 4),
    "contrastive": Variant("contrastive", "contrastive", {"distance": "euclidean", "normalize": False, "margin": 1.0}),
}
BATCH = 80
PAPER = ("softmax", "triplet", "lifted_structure", "nra")


def settings(
    loss: str,
    *,
    root: str = "",
    out: str = "",
    seed: int = 0,
    iterations: int = 20_000,
    classes: int = 0,
    optimizer: str = "own",
    lr: float = 1e-3,
    **machine: Any,
) -> Train:
    """The run of one loss; ``machine``: device, threads and the like.

    A batch of 80 images, or a few less, shows ``classes`` digits, each equally often; 0 for as many as its ``Variant`` has.
    ``optimizer``: "own" for that of its ``Variant``.

    >>> settings("nra").loss_settings, settings("nra").optimizer, settings("triplet").optimizer
    ({'power': 4.0, 'eps': 0.0001}, 'sgd', 'adam')
    """
    if loss not in LOSSES:
        raise ValueError(checks.unknown("loss", loss, LOSSES))
    classes = classes or LOSSES[loss].classes
    images = BATCH // classes
    return Train(
        data="mnist",
        root=root,
        out=out,
        side=0,
        network="digits",
        dim=2,
        frozen_batch_norm=False,
        loss=LOSSES[loss].loss,
        loss_settings=dict(LOSSES[loss].settings),
        sampler="pk",
        batch=classes * images,
        images=images,
        iterations=iterations,
        # The images as they are: 28 x 28, neither cut nor mirrored.
        geometry="crop",
        size=28,
        resize=28,
        mirror=False,
        optimizer=LOSSES[loss].optimizer if optimizer == "own" else optimizer,
        lr=lr,
        momentum=0.9,
        head_multiplier=1.0,
        loss_multiplier=1.0,
        weight_decay=0.0,
        schedule="constant",
        warm_up=0,
        # Points of the plane in half precision would lie on a grid that the figure shows.
        precision="float32",
        # The watch for collapse looks at directions from the origin; three of these losses see differences only.
        collapse=0.0,
        seed=seed,
        tensorboard=False,
        **machine,
    )
