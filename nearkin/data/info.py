"""What lies at a path: which data set, in which layout, how much of it, and what to do next."""

from __future__ import annotations

import os
import shlex
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from nearkin import advice, calling, wording
from nearkin.data.counts import Counts, counted
from nearkin.data.files import image_extensions, images_below, naming
from nearkin.data.folder import find_parts
from nearkin.data.layout import archives_in, is_archive
from nearkin.data.listing import CSV_ENDINGS, PARQUET_ENDINGS
from nearkin.data.mnist import files as mnist_files
from nearkin.data.registry import DATASETS, load
from nearkin.data.table import Splits

SAMPLE = 100


@dataclass(frozen=True)
class Info:
    """A description of a path. ``name`` is the data set to load it with, empty where it cannot be loaded."""

    path: Path
    name: str
    layout: str
    images: int = 0
    classes: int = 0
    per_class: tuple[int, float, int] = (0, 0.0, 0)
    """Fewest, median and most images of a class."""
    formats: dict[str, int] = field(default_factory=dict)
    bytes: int = 0
    sizes: tuple[tuple[int, int], ...] = ()
    """Width and height of a sample of the images, from their heads."""
    unreadable: tuple[str, ...] = ()
    """Images of the sample whose head Pillow cannot read."""
    parts: Counts | None = None
    disjoint: bool = True
    published: Counts | None = None
    notes: tuple[str, ...] = ()
    next: str = ""

    @property
    def usable(self) -> bool:
        """Whether it can be loaded as it lies, and images of it can be read."""
        return bool(self.name) and (bool(self.sizes) or not self.unreadable)


def info(path: str | os.PathLike[str], sample: int = SAMPLE) -> Info:
    """Look at a folder or file and say what it is. Image files are counted; of ``sample`` of them the head is read."""
    place = Path(path).expanduser()
    if not place.exists():
        raise ValueError(f"path must exist, got {place}, which does not; check the path.")
    name, layout = recognise(place)
    if not name:
        return _not_loadable(place, layout)
    options: dict[str, object] = {"check_counts": False} if DATASETS[name].counts is not None else {}
    try:
        splits = load(name, place, **options)
    except ValueError as error:
        return Info(place, "", layout, notes=(str(error),), published=DATASETS[name].counts)
    return _describe_splits(place, name, layout, splits, sample)


def recognise(place: Path) -> tuple[str, str]:
    """The data set that would load this path, and its layout; the name is empty where none would."""
    if place.is_file():
        ending = place.suffix.lower()
        if ending in (*CSV_ENDINGS, *PARQUET_ENDINGS):
            return "table", f"{'CSV' if ending in CSV_ENDINGS else 'Parquet'} table"
        return "", "packed archive" if is_archive(place) else "single file"
    for name, entry in DATASETS.items():
        found = None if entry.layout is None else entry.layout(place)
        if found is not None:
            return name, found
    if find_parts(place) is not None:
        return "folder", "parts with a folder per class"
    found_images = images_below(place, image_extensions()).images
    if any(image.parent != place for image in found_images):
        return "folder", "a folder per class"
    if found_images:
        return "", "images without class folders"
    return "", "packed archives" if archives_in(place) else "no images"


def _not_loadable(place: Path, layout: str) -> Info:
    if layout == "packed archive":
        step = f'unpack it: nearkin.data.extract("{place}", FOLDER)'
    elif layout == "packed archives":
        owner = next(
            (name for name, entry in DATASETS.items()
             for source in entry.sources for remote in source if (place / remote.name).is_file()),
            None,
        )  # fmt: skip
        packed = archives_in(place)
        step = (
            f"nearkin data get {owner} --root {shlex.quote(str(place))}"
            if owner
            else f"unpack {naming(packed)}: nearkin.data.extract(ARCHIVE, FOLDER)"
        )
    elif layout == "images without class folders":
        step = "move the images of each class into a folder of its own, or list them in a CSV table"
    else:
        step = "pass a folder of images or a CSV table"
    return Info(place, "", layout, next=step)


def _describe_splits(place: Path, name: str, layout: str, splits: Splits, sample: int) -> Info:
    parts = counted(splits.train, splits.test)
    per_class: Counter[str] = Counter()
    for part in (splits.train, splits.test):
        for label, count in zip(*np.unique(part.labels, return_counts=True), strict=True):
            per_class[part.class_names[label]] += int(count)
    sizes = per_class.values()
    images = [image for part in (splits.train, splits.test) for image in part.images if isinstance(image, Path)]
    if images:
        formats = Counter(image.suffix.lower().removeprefix(".") for image in images)
        total = sum(image.stat().st_size for image in images)
        seen, unreadable = _sample(images, sample)
    else:
        formats = Counter({"idx": parts.images})
        total = sum(path.stat().st_size for path in mnist_files(place))
        seen, unreadable = [(28, 28)], []
    return Info(
        place,
        name,
        layout,
        images=parts.images,
        classes=len(per_class),
        per_class=(min(sizes), statistics.median(sizes), max(sizes)),
        formats=dict(formats.most_common()),
        bytes=total,
        sizes=tuple(seen),
        unreadable=tuple(unreadable),
        parts=parts,
        disjoint=splits.disjoint,
        published=DATASETS[name].counts,
        notes=splits.notes,
        next=_next(place, name, parts) if seen or not unreadable else calling.line("data", "check", place),
    )


def _next(place: Path, name: str, parts: Counts) -> str:
    published = DATASETS[name].counts
    if published is not None and parts != published:
        return f"nearkin data get {name} --root DIR, an empty folder; or load what is there with check_counts=False"
    return advice.training("--data", name, "--root", place)


def _sample(images: Sequence[Path], count: int) -> tuple[list[tuple[int, int]], list[str]]:
    """Sizes of images spread evenly over all of them; only heads are read."""
    from PIL import Image

    chosen = images if len(images) <= count else [images[row * len(images) // count] for row in range(count)]
    sizes: list[tuple[int, int]] = []
    unreadable: list[str] = []
    for path in chosen:
        try:
            with Image.open(path) as image:
                sizes.append((image.width, image.height))
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
            unreadable.append(str(path))
    return sizes, unreadable


def describe(found: Info) -> str:
    """The same as text, a line for each fact."""
    lines = [f"{found.path}", f"  what        {_what(found)}"]
    if found.images:
        low, middle, high = found.per_class
        lines += [
            f"  images      {found.images:,} in {wording.count(found.classes, 'class', 'classes')}, {_bytes(found.bytes)}",
            f"  per class   {low:,} to {high:,}, median {middle:g}",
            f"  formats     {', '.join(f'{kind} {count:,}' for kind, count in found.formats.items())}",
        ]
    if found.sizes:
        lines.append(f"  pixels      {_pixels(found.sizes)}")
    if found.parts is not None:
        lines += _part_lines(found)
    if found.unreadable:
        lines.append(
            f"  unreadable  {len(found.unreadable)} of {len(found.sizes) + len(found.unreadable)} looked at: "
            f"{naming(found.unreadable)}"
        )
    lines += [f"  note        {note}" for note in found.notes]
    if found.next:
        lines.append(f"  next        {found.next}")
    return "\n".join(lines)


def _what(found: Info) -> str:
    if not found.name:
        return found.layout
    return f"{found.name} ({DATASETS[found.name].description}): {found.layout}"


def _pixels(sizes: Sequence[tuple[int, int]]) -> str:
    widths, heights = zip(*sizes, strict=True)
    if len(set(sizes)) == 1:
        return f"{widths[0]} x {heights[0]}"
    middle = f"{statistics.median(widths):g} x {statistics.median(heights):g}"
    return (
        f"{middle} in the middle, widths {min(widths)} to {max(widths)}, heights {min(heights)} to {max(heights)} "
        f"(of {len(sizes)} looked at)"
    )


def _part_lines(found: Info) -> list[str]:
    parts, published = found.parts, found.published
    assert parts is not None
    lines = []
    for part in ("train", "test"):
        images, classes = getattr(parts, f"{part}_images"), getattr(parts, f"{part}_classes")
        text = f"{wording.count(images, 'image')} of {wording.count(classes, 'class', 'classes')}"
        if part == "test" and parts.queries is not None:
            text += f", {parts.queries:,} of them queries"
        if published is not None:
            same = (images, classes) == (getattr(published, f"{part}_images"), getattr(published, f"{part}_classes"))
            same = same and (part == "train" or parts.queries == published.queries)
            text += ", as published" if same else ", not as published"
        lines.append(f"  {part:<12s}{text}")
    if not found.disjoint:
        lines.append("  classes     both parts share classes")
    return lines


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"
        size /= 1024
    raise AssertionError
