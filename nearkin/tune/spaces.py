"""Where to search: each loss brings its own parameters and their ranges, as data.

The ranges of multi_similarity, soft_triple and proxy_anchor are those of Table 15 of "Metric Learning: A Deep Dive" (2020).
Its margin of multi_similarity is called gamma here; its gamma of soft_triple multiplies, ours divides, so
``gamma_inverse`` is searched; its learning rate of the weights is ``loss_lr``. The others span what their papers tried or
recommend, with room on both sides, and have no steps: no loss runs out of points before the others.

A name is a setting of the loss, else one of training. Two are derived: ``loss_lr`` is the learning rate of what the loss
learns (``loss_multiplier`` follows from it and ``lr``), ``NAME_inverse`` is 1 / NAME.
"""

from __future__ import annotations

from nearkin.tune.ranges import Parameter, Range

Space = dict[str, Parameter]

UNIT = Range(0, 1, step=0.1)  # [0, 1] in steps of 0.1
HUNDRED = Range(2, 100, step=2)  # (0, 100] in steps of 2
TEMPERATURE = Range(0.02, 0.5, log=True)
SHARPNESS = Range(0.002, 0.1, log=True)
SCALE = Range(8, 128, log=True)
FASTER = Range(1, 1000, log=True)

# Settings of training that can be searched for any loss. Others need a range of their own.
COMMON: Space = {
    "lr": Range(1e-6, 1e-2, log=True),
    "loss_lr": Range(1e-5, 1e-1, log=True),
    "loss_multiplier": FASTER,
    "head_multiplier": Range(1, 100, log=True),
    "head_scale": Range(0.01, 1, log=True),
    "weight_decay": Range(1e-6, 1e-1, log=True),
    "clip_norm": Range(0.1, 100, log=True),
    "images": Range(2, 8, step=1, whole=True),
}

_MULTI_SIMILARITY: Space = {"gamma": UNIT, "alpha": HUNDRED, "beta": HUNDRED, "epsilon": UNIT}

SPACES: dict[str, Space] = {
    # Table 15.
    "multi_similarity": _MULTI_SIMILARITY,
    "raw": _MULTI_SIMILARITY,
    "soft_triple": {
        "margin": UNIT,
        "tau": UNIT,
        "scale": HUNDRED,
        "loss_lr": Range(1e-5, 1e-4, step=1e-5),
        "gamma_inverse": Range(10, 100, step=10),
    },
    "proxy_anchor": {"margin": UNIT, "scale": HUNDRED},
    # Pairs.
    "contrastive": {"margin": Range(0, 1)},
    "triplet": {"margin": Range(0, 0.5)},
    "lifted_structure": {"margin": Range(0.1, 1.5)},
    "n_pair": {"l2": Range(1e-4, 1e-1, log=True), "head_scale": COMMON["head_scale"]},
    "binomial_deviance": {"gamma": Range(0, 1), "alpha": Range(0.5, 20, log=True), "beta": Range(5, 100, log=True)},
    "margin": {
        "margin": Range(0.05, 0.6),
        "beta": Range(0.6, 1.6),
        "loss_multiplier": Range(0.1, 1000, log=True),
    },
    "ranked_list": {"alpha": Range(1, 1.6), "margin": Range(0, 1), "temperature": Range(0, 20)},
    "nra": {"power": Range(1, 6), "eps": Range(1e-6, 1e-2, log=True)},
    "histogram": {"bins": Range(10, 200, step=5, whole=True)},
    "angular": {"degrees": Range(25, 60)},
    "quadruplet": {"first_margin": Range(0.1, 1.5), "second_margin": Range(0, 1)},
    "struct_clust": {"gamma": Range(0.01, 10, log=True)},
    "spectral_clust": {"lr": COMMON["lr"], "head_scale": COMMON["head_scale"]},  # it has no setting of its own
    "circle": {"margin": Range(0.05, 0.6), "scale": Range(16, 256, log=True)},
    "supcon": {"temperature": TEMPERATURE},
    "nt_xent": {"temperature": TEMPERATURE},
    "smooth_ap": {"temperature": SHARPNESS},
    "recall_at_k": {"t1": Range(0.1, 10, log=True), "t2": SHARPNESS},
    # Proxies.
    "softmax": {"loss_multiplier": FASTER},  # its scale counts where it is normalized
    "proxy_nca": {"scale": Range(1, 8, log=True), "loss_multiplier": FASTER},
    "arcface": {"degrees": Range(0, 45), "scale": SCALE, "loss_multiplier": FASTER},
    "cosface": {"margin": Range(0, 0.6), "scale": SCALE, "loss_multiplier": FASTER},
    "sub_center_arcface": {
        "centers": Range(2, 6, step=1, whole=True),
        "degrees": Range(0, 45),
        "scale": SCALE,
        "loss_multiplier": FASTER,
    },
    "proxy_repulsion": {"margin": UNIT, "scale": HUNDRED},
}
