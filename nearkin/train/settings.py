"""Every setting of a training run, in one place: fields = flags = keys of config.toml."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from typing import Any

from nearkin import checks, config
from nearkin.checks import COUNT, NOT_NEGATIVE, POSITIVE, SEED, Limit
from nearkin.config import option

WHOLE = Limit(low=0, whole=True)
SHARE = Limit(low=0, high=1)
INSIDE = Limit(low=0, high=1, low_open=True, high_open=True)
PROTOCOLS = ("last_epoch", "test_feedback", "fixed_validation", "cross_validation")


@dataclass(frozen=True)
class Train:
    """Settings of a training run. Defaults are those of a ResNet-50 fine-tuned on a few thousand images."""

    data: str = option(
        "folder", "data set: folder, table, cub200, cars196, sop, inshop, mnist, glyphs", group="What to learn from"
    )
    root: str = option("", "where the data set lies", machine=True)
    data_settings: dict[str, Any] = option({}, "settings of the data set")
    packs: str = option("", "folder that keeps decoded images for later runs; default: the user's cache", machine=True)
    side: int = option(256, "shorter side at which decoded images are kept; 0: as they are", WHOLE)
    recipe: str = option(
        "default", "settings of a paper: default, ranked_list, deep_dive, unified_view, nra, proxy_anchor"
    )
    out: str = option("", "folder of the run; default: runs/DATA-LOSS-SEED", machine=True)

    protocol: str = option(
        "last_epoch",
        "how the epoch to report is chosen; see nearkin.protocols",
        PROTOCOLS,
        group="What chooses the epoch",
    )
    ratio: float = option(0.9, "share of the training classes that train under fixed_validation", INSIDE)
    folds: int = option(10, "parts of cross_validation", Limit(low=2, whole=True))
    fold: int = option(0, "which of these parts validates, from 0", WHOLE)
    split_seed: int = option(0, "seed of the draw of validation classes", SEED)
    audit: bool = option(
        False, "log the test set in every epoch to a file that is opened only at the end; test_feedback logs it openly"
    )
    test: bool = option(True, "measure the test set at the end; off while settings are searched for")

    network: str = option("resnet50", "network; timm:NAME takes any network of timm", group="The network")
    weights: str = option(
        "",
        "pretrained weights: a safetensors file, a state dict, package or hub; empty: random, which suits small, digits",
    )
    network_settings: dict[str, Any] = option({}, "further settings of the network")
    dim: int = option(512, "size of the embedding, of each level where there are several", COUNT)
    levels: str = option("", "lmh: three levels as in ranked list loss; or comma-separated names; empty: the last")
    pooling: str = option("", "gap, gmp, gap+gmp, gem or none; empty: the network's own, gap+gmp for most")
    head_scale: float = option(
        1.0, "factor on new layers at the start; raw losses such as n_pair want it small", POSITIVE
    )
    frozen_batch_norm: bool = option(True, "keep the statistics of batch norm as the weights came with them")

    loss: str = option("proxy_anchor", "loss; nearkin losses lists them", group="The loss")
    loss_settings: dict[str, Any] = option({}, "settings of the loss")
    memory: int = option(0, "samples of earlier batches that a pair loss also compares with", WHOLE)

    sampler: str = option(
        "random", "which images make a batch", ("random", "pk", "n_pair", "hard_class", "smart"), group="The batches"
    )
    batch: int = option(120, "images of a batch, over all processes", COUNT)
    images: int = option(5, "images of each class in a batch, where the sampler balances classes", COUNT)
    epochs: int = option(20, "passes over the training images", COUNT)
    iterations: int = option(0, "batches to train on instead of epochs", WHOLE)
    batches: int = option(0, "batches of an epoch; 0: as many as the images fill", WHOLE)

    geometry: str = option(
        "resized_crop",
        "crop of the training images",
        ("resized_crop", "crop", "squash", "longer_side"),
        group="The pictures",
    )
    size: int = option(224, "side of what the network sees", COUNT)
    resize: int = option(
        256, "side from which crops of that size are cut; where only size is given, in proportion", COUNT
    )
    crop_scale: tuple[float, ...] = option((0.16, 1.0), "least and most share of the image in a resized crop", SHARE)
    mirror: bool = option(True, "mirror half of the training images")
    test_size: int = option(0, "side of what the network sees at test; 0: size", WHOLE)
    test_resize: int = option(
        0,
        "shorter side from which the centre crop of a test is cut; 0: resize; where only test_size is given, in proportion",
        WHOLE,
    )

    optimizer: str = option("adamw", "optimiser", ("adamw", "adam", "sgd"), group="The optimiser")
    lr: float = option(3e-5, "learning rate of the network", POSITIVE)
    head_multiplier: float = option(10.0, "learning rate of new layers, as a multiple of --lr", NOT_NEGATIVE)
    loss_multiplier: float = option(
        300.0, "learning rate of what the loss learns, such as proxies, as a multiple of --lr", NOT_NEGATIVE
    )
    weight_decay: float = option(1e-2, "weight decay", NOT_NEGATIVE)
    momentum: float = option(0.9, "momentum of sgd", SHARE)
    clip_norm: float = option(0.0, "clip gradients to this norm; 0: no clipping", NOT_NEGATIVE)
    clip_value: float = option(0.0, "clip gradient entries to this value; 0: no clipping", NOT_NEGATIVE)
    schedule: str = option("step", "how the learning rate falls", ("constant", "step", "cosine"))
    step_epochs: float = option(5.0, "epochs between two steps", POSITIVE)
    gamma: float = option(0.5, "factor of each step", POSITIVE)
    ramp: float = option(0.0, "fraction of the run over which the learning rate warms up from 0", SHARE)
    warm_up: int = option(1, "epochs at the start that train only the new layers and the loss", WHOLE)

    ks: tuple[int, ...] = option((1, 2, 4, 8), "recall@k for these k", COUNT, group="Measuring")
    evaluate_every: int = option(
        0, "epochs between two measurements; 0: every epoch where a protocol chooses, else at the end only", WHOLE
    )

    keep_embeddings: bool = option(
        False,
        "keep the vectors of the measured images at every measured epoch, in epochs/ of the run, for the map of nearkin "
        "serve: 2 bytes a number, so 6 MB an epoch for 6,000 images of 512; wants evaluate_every 1",
        machine=True,
    )

    seed: int = option(0, "seed of everything random", SEED, group="The machine")
    device: str = option("auto", "cpu, cuda or cuda:N; auto: cuda where there is one", machine=True)
    precision: str = option(
        "auto", "numbers of the network; auto: bf16 on cuda", ("auto", "float32", "bf16", "float64")
    )
    compile: bool = option(False, "compile the network first: slower to start, faster after", machine=True)
    graph: bool = option(True, "record the network's kernels on cuda and replay them", machine=True)
    deterministic: bool = option(False, "the same bits in every run on cuda, a little slower")
    chunk: int = option(0, "gradient caching: images that go through the network at a time; 0: the whole batch", WHOLE)
    workers: int = option(0, "threads that prepare batches ahead", WHOLE, machine=True)
    threads: int = option(0, "CPU threads; 0: as torch chooses", WHOLE, machine=True)
    checkpoint_every: float = option(120.0, "minimum seconds between checkpoints", NOT_NEGATIVE, machine=True)
    tensorboard: bool = option(True, "also write TensorBoard files, where it is installed", machine=True)
    collapse: float = option(1e-6, "spread of a batch's embeddings below which the run is stopped as collapsed", SHARE)

    def __post_init__(self) -> None:
        config.check("train", self)
        if len(self.crop_scale) != 2 or not 0 < self.crop_scale[0] <= self.crop_scale[1]:
            raise ValueError(
                f"train: crop_scale must be two shares, least and most, got {self.crop_scale}; pass, for example, 0.16 1."
            )
        if not self.ks:
            raise ValueError("train: ks must be at least one number, got none; pass, for example, 1 2 4 8.")
        if self.size > self.resize and self.geometry != "resized_crop":
            raise ValueError(
                f"train: size must be at most resize ({self.resize}), got {self.size}; crops are cut from that side."
            )
        if self.protocol == "cross_validation" and self.fold >= self.folds:
            raise ValueError(
                f"train: fold must be below folds ({self.folds}), got {self.fold}; folds are counted from 0."
            )
        if not self.test and self.protocol == "test_feedback":
            raise ValueError(
                "train: test must be on under test_feedback, which chooses the epoch by it, got it off; "
                "use fixed_validation or last_epoch."
            )
        if self.audit and not self.test:
            raise ValueError(
                "train: audit must be off where test is off, since it measures the test set, got it on; "
                "leave out --audit or --no-test."
            )
        if self.iterations and self.batches:
            raise ValueError("train: iterations and batches must not both be given, got both; leave out batches.")

    @property
    def names(self) -> tuple[str, ...] | str | None:
        """The levels as ``models.create`` takes them."""
        if self.levels in ("", "lmh"):
            return self.levels or None
        return tuple(name.strip() for name in self.levels.split(","))

    @property
    def chooses(self) -> bool:
        """Whether the protocol chooses an epoch."""
        return self.protocol != "last_epoch"

    @property
    def validates(self) -> bool:
        """Whether the protocol keeps classes back to choose the epoch by."""
        return self.protocol in ("fixed_validation", "cross_validation")

    @property
    def audits(self) -> bool:
        """Whether the test set is measured beside training, out of its sight; test_feedback looks at it anyway."""
        return self.audit and self.protocol != "test_feedback"

    @classmethod
    def shown_defaults(cls) -> dict[str, str]:
        """What help says of the settings that the default recipe fills, and hence another loss or recipe otherwise."""
        from nearkin import recipes

        return {
            name: f"{config.plain(value)}, by the recipe" for name, value in recipes.settings("default", {}).items()
        }

    def identity(self) -> dict[str, Any]:
        """The settings that determine the result: all but those about the machine."""
        plain = asdict(self)
        return {field.name: plain[field.name] for field in fields(Train) if not field.metadata["machine"]}

    @property
    def digest(self) -> str:
        """A short name of the result: runs with equal digests on one machine are equal."""
        return hashlib.sha256(json.dumps(self.identity(), sort_keys=True).encode()).hexdigest()[:12]


def resolve(*layers: dict[str, Any]) -> Train:
    """Settings from defaults, the recipe over them, and the layers over both, the last one on top."""
    from nearkin import recipes

    plain = config.changed(Train, _crops(*layers), *layers)
    named = {key: getattr(plain, key) for layer in layers for key in layer}
    recipe = recipes.settings(plain.recipe, named)
    return config.changed(Train, _crops(recipe, *layers), recipe, *layers)


def _crops(*layers: dict[str, Any]) -> dict[str, int]:
    """The sides that crops are cut from, in the usual proportion, where sizes are given without them."""
    given = {key: value for layer in layers for key, value in layer.items()}
    pairs = (("size", "resize"), ("test_size", "test_resize"))
    return {
        resize: round(given[size] * 256 / 224)
        for size, resize in pairs
        if type(given.get(size)) is int and resize not in given
    }


def check_rates(settings: Train) -> None:
    """Raise where the rate of what the loss learns is said in a second place, which training does not read."""
    if "lr_multiplier" in settings.loss_settings:
        value = settings.loss_settings["lr_multiplier"]
        raise ValueError(
            f"loss_settings must not hold lr_multiplier where nearkin trains, got {value!r}; pass it as loss_multiplier "
            f"(--loss-multiplier {value})."
        )


def check_names(settings: Train) -> None:
    """Raise on a misspelt loss, network, data set or a setting of these, before any work is done."""
    from nearkin import data, losses, models
    from nearkin.data.registry import check_options

    if settings.data not in data.DATASETS:
        raise ValueError(checks.unknown("data set", settings.data, data.DATASETS))
    check_options(settings.data, settings.data_settings)
    if settings.loss not in losses.LOSSES:
        raise ValueError(checks.unknown("loss", settings.loss, losses.LOSSES))
    check_rates(settings)
    models.builder(settings.network, settings.network_settings)
