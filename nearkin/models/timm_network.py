"""Any network of the library timm, by name; the library is an extra and is imported when one is made."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from nearkin.models.backbone import Backbone, Channels
from nearkin.models.weights import first_line

PREFIX = "timm:"


def timm_network(
    name: str,
    *,
    size: int | None = None,
    mean: Channels | None = None,
    std: Channels | None = None,
    pretrained: bool = False,
) -> TimmNetwork:
    """The network that timm calls ``name``; ``pretrained`` fetches its weights through timm."""
    return TimmNetwork(name, size=size, mean=mean, std=std, pretrained=pretrained)


class TimmNetwork(Backbone):
    """A timm network; the level ``final`` is what its classifier would read.

    ``final`` is a map, which the head pools, or, of networks of tokens and others with a way of pooling of their own, the
    vector that they pool themselves. The other levels are timm's stages under timm's names with "_" for ".", as maps;
    networks that timm gives no access to inside have ``final`` only. The three levels L, M and H are the last two
    stages before the last and ``final``, or, where all stages are alike, those a third and two thirds of the way.
    Mean, standard deviation and size come from timm's description of its weights.
    """

    level = "final"

    def __init__(
        self, name: str, *, size: int | None, mean: Channels | None, std: Channels | None, pretrained: bool
    ) -> None:
        network, described = _make(name, size, pretrained)
        self.name = f"{PREFIX}{name}"
        self.least = 1
        self.fixed = True
        super().__init__(
            size=size or described["input_size"][-1], mean=mean or described["mean"], std=std or described["std"]
        )
        self.network = network
        classifier = described.get("classifier") or ()
        self.unused = tuple(f"{part}." for part in ((classifier,) if isinstance(classifier, str) else classifier))
        stages = list(network.feature_info) if hasattr(network, "forward_intermediates") else []
        self._places = {str(stage["module"]).replace(".", "_"): number for number, stage in enumerate(stages)}
        self.channels = {level: int(stage["num_chs"]) for level, stage in zip(self._places, stages, strict=True)}
        self.triple = _triple(list(self._places), [stage["reduction"] for stage in stages])
        with torch.no_grad():
            network.eval()
            features = network.forward_features(torch.zeros(1, 3, self.size, self.size))
            width = int(network.forward_head(features, pre_logits=True).shape[1])
            network.train()
        # Only a map whose channels are the second dimension can be pooled as the others are.
        is_map = isinstance(features, Tensor) and features.dim() == 4 and features.shape[1] == network.num_features
        self.vectors = () if is_map else ("final",)
        self.channels["final"] = int(network.num_features) if is_map else width

    def forward(self, images: Tensor, levels: Sequence[str] | None = None) -> dict[str, Tensor]:
        self.check_images(images)
        wanted = (self.level,) if levels is None else tuple(levels)
        for level in wanted:
            self.check_level(level)
        places = sorted(self._places[level] for level in wanted if level != "final")
        found: dict[str, Tensor] = {}
        final: Any = None
        if places:
            only = "final" not in wanted
            result = self.network.forward_intermediates(
                images, indices=places, output_fmt="NCHW", intermediates_only=only, stop_early=only
            )
            final, maps = (None, result) if only else result
            by_place = dict(zip(places, maps, strict=True))
            found = {level: by_place[place] for level, place in self._places.items() if place in by_place}
        else:
            final = self.network.forward_features(images)
        if final is not None:
            found["final"] = self.network.forward_head(final, pre_logits=True) if self.vectors else final
        return {level: found[level] for level in wanted}

    def weights_go_to(self) -> nn.Module:
        return self.network


def takes_one_size(name: str) -> bool:
    """Whether timm says that the network takes images of one size only; where timm is not there, nothing says so."""
    try:
        import timm
    except ImportError:
        return False
    library: Any = timm
    try:
        described = library.get_pretrained_cfg(name)
    except RuntimeError:  # a name that timm does not know is told when the network is made
        return False
    return bool(getattr(described, "fixed_input_size", False))


def _make(name: str, size: int | None, pretrained: bool) -> tuple[Any, dict[str, Any]]:
    try:
        import timm
    except ImportError as error:
        raise ImportError(
            f"timm must be installed for {PREFIX}{name}, got none; run pip install 'nearkin[timm]'."
        ) from error
    library: Any = timm  # whose types say less than it takes
    known = library.list_models()
    if name.split(".")[0] not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else "timm.list_models() lists those there are."
        raise ValueError(f"timm network {name!r} is not known; {hint}")
    try:
        described = dict(library.get_pretrained_cfg(name).to_dict())
        # Networks of tokens are built for one size of image.
        sized = {"img_size": size} if size and described.get("fixed_input_size") else {}
        return library.create_model(name, pretrained=pretrained, num_classes=0, **sized), described
    except Exception as error:  # timm's own, the hub's, and those of the network's settings
        raise ValueError(
            f"timm must be able to make {name!r}{' with its weights' * pretrained}, got {first_line(error)!r}; "
            f"{'connect to the network, or pass a file of weights' if pretrained else 'change its name or size'}."
        ) from error


def _triple(levels: list[str], reductions: list[int]) -> tuple[str, ...]:
    if len(levels) < 3:
        return ()
    if len(set(reductions)) == 1:
        return (levels[len(levels) // 3 - 1], levels[2 * len(levels) // 3 - 1], "final")
    return (levels[-3], levels[-2], "final")
