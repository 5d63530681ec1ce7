"""``nearkin index build | add | remove | info | search``."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nearkin import calling, checkpoint, config, wording
from nearkin.checks import COUNT, Limit
from nearkin.config import option
from nearkin.index.approximate import Approximate
from nearkin.index.change import Added
from nearkin.index.index import Index, check_graph
from nearkin.index.rerank import METHODS
from nearkin.index.rows import number_of

WHOLE = Limit(low=0, whole=True)
STORES = ("parquet", "lancedb", "qdrant", "pgvector")


@dataclass(frozen=True)
class Build:
    """The flags of ``nearkin index build``."""

    run: str = option("", "folder of the run, or of an exported model", positional=True)
    folder: str = option("", "images; the folders directly below name their classes", positional=True)
    out: str = option("my.index", "folder of the index")
    map: bool = option(True, "draw the map of nearkin serve at once, where scikit-learn is installed; takes seconds")
    device: str = option("auto", "cpu, cuda or cuda:N; auto: cuda where there is one")
    workers: int = option(0, "processes that decode images; 0: one for each core", WHOLE)

    def __post_init__(self) -> None:
        config.check("index build", self)


def build(command: Build) -> None:
    """Embed a folder of images and make it searchable.

    nearkin index build runs/birds my/photos --out my.index

    The index holds the vectors, small pictures and the network, so that it can be searched without the run. Stopped in
    the middle, it holds what was finished, and nearkin index add goes on.
    """
    from nearkin.train.restore import warn_unfinished
    from nearkin.trained import load

    trained = load(command.run, command.device)
    warn_unfinished("index build", trained.facts.get("unfinished", ""))
    found = Index.create(command.out, trained)
    added = _fill(found, command, trained)
    if command.map:
        _draw(found)
    _say(found, added, command.out)


def _fill(found: Index, command: Build, trained: Any) -> Added:
    """Add the images of the command; an index that would be empty is an error, and nothing is left of it."""
    try:
        added = _add(found, command.folder, trained, command.workers, False)
        if not added.new:
            path, reason = added.bad[0]
            raise ValueError(
                f"folder must hold images that can be read, got none in {command.folder!r}, such as {path}: {reason}; "
                f"pass another folder."
            )
    except ValueError:
        if not len(Index.open(found.folder)):
            shutil.rmtree(found.folder)
        raise
    return added


@dataclass(frozen=True)
class Add:
    """The flags of ``nearkin index add``."""

    index: str = option("", "folder of the index", positional=True)
    folder: str = option("", "images to add, or to look at again", positional=True)
    prune: bool = option(False, "also remove what is gone from that folder")
    map: bool = option(False, "also draw the map of nearkin serve anew, which else does so when it is looked at")
    device: str = option("auto", "cpu, cuda or cuda:N; auto: cuda where there is one")
    workers: int = option(0, "processes that decode images; 0: one for each core", WHOLE)

    def __post_init__(self) -> None:
        config.check("index add", self)


def add(command: Add) -> None:
    """Add a folder to an index; only new and changed files are embedded.

    nearkin index add my.index my/photos --prune
    """
    found = Index.open(command.index)
    added = _add(found, command.folder, None, command.workers, command.prune, command.device)
    if command.map:
        _draw(found)
    _say(found, added, command.index)


@dataclass(frozen=True)
class Remove:
    """The flags of ``nearkin index remove``."""

    index: str = option("", "folder of the index", positional=True)
    what: str = option("", "an image's id or path, or a folder: all images below it", positional=True)

    def __post_init__(self) -> None:
        config.check("index remove", self)


def remove(command: Remove) -> None:
    """Take images out of an index; the files themselves stay.

    nearkin index remove my.index my/photos/blurred
    """
    found = Index.open(command.index)
    count = found.remove(command.what)
    print(f"{wording.count(count, 'image')} removed, {len(found):,} left in {command.index}")


@dataclass(frozen=True)
class Info:
    """The flags of ``nearkin index info``."""

    index: str = option("", "folder of the index", positional=True)
    verify: bool = option(False, "read everything and compare it with its checksums")

    def __post_init__(self) -> None:
        config.check("index info", self)


def info(command: Info) -> None:
    """What an index holds.

    nearkin index info my.index --verify
    """
    import json

    from nearkin.trained import FACTS

    found = Index.open(command.index)
    if command.verify:
        found.verify()
    model = json.loads((found.folder / "model" / FACTS).read_bytes())
    facts = model["facts"]
    size = sum(path.stat().st_size for path in found.folder.rglob("*") if path.is_file())
    gone = sum(len(part.gone) for part in found.manifest.parts)
    labels = found.labels()
    named = {name: count for name, count in labels.items() if name}
    print(f"{command.index}: {wording.count(len(found), 'image')}, {found.dim} dimensions, {size / 1e6:,.1f} MB")
    print(
        f"network   {model['network']['name']}, {facts.get('loss', 'unknown loss')} on {facts.get('data', 'unknown')}"
    )
    print(f"classes   {len(named):,}" + (f", {wording.count(labels[''], 'image')} without" if labels.get("") else ""))
    room = wording.count(gone, "removed image still takes", "removed images still take")
    print(f"segments  {len(found.segments)}, {room} room")
    if command.verify:
        print("checksums all right")


@dataclass(frozen=True)
class Search:
    """The flags of ``nearkin index search``."""

    index: str = option("", "folder of the index", positional=True)
    image: str = option("", "image to look for, or an id of the index", positional=True)
    k: int = option(10, "how many images", COUNT)
    label: str = option("", "only images of this class")
    again: str = option("none", "second look at what was found", METHODS)
    approximate: bool = option(False, "search the graph that nearkin index approximate has built")
    picture: str = option("", "write the query and what was found to this PNG file")
    device: str = option("auto", "cpu, cuda or cuda:N; auto: cuda where there is one")

    def __post_init__(self) -> None:
        config.check("index search", self)


def search(command: Search) -> None:
    """Find the images that look most like one.

    nearkin index search my.index photo.jpg -k 10 --picture strip.png
    """
    if command.picture:
        checkpoint.check_file("picture", Path(command.picture), ".png")
    found = Index.open(command.index)
    if command.label:
        found.check_label(command.label)
    number = number_of(command.image)
    query, truth = _query(found, command, number)
    left = () if number is None else (number,)
    graph = _graph(found, command) if command.approximate else None
    hits = found.search(query, command.k, label=command.label or None, leave_out=left, again=command.again, graph=graph)
    width = max([len(hit.label) for hit in hits] + [5])
    print(f"{'':4s}{'cosine':>7s}  {'class':{width}s}  {'id':>7s}  path")
    for place, hit in enumerate(hits, 1):
        print(f"{place:3d} {hit.similarity:7.3f}  {hit.label:{width}s}  {hit.id:7d}  {hit.path}")
    if command.picture:
        from nearkin.index.picture import save, strip

        shown = _picture(found, command, number)
        save(command.picture, strip(shown, hits, [found.thumbnail(hit.id) for hit in hits], truth))
        print(f"see {command.picture}")


def _graph(found: Index, command: Search) -> Approximate:
    check_graph("approximate", command.label or None, command.again)
    graph = Approximate.open(found)
    if graph is None:
        raise ValueError(
            "the graph must be built for the index as it is now, got none; "
            f"run {calling.line('index', 'approximate', command.index)}."
        )
    print(
        f"approximate search: {100 * graph.quality.recall:.1f} % of the true ten nearest were found when it was built"
    )
    return graph


@dataclass(frozen=True)
class Graph:
    """The flags of ``nearkin index approximate``."""

    index: str = option("", "folder of the index", positional=True)
    least: float = option(0.95, "share of the true ten nearest that must be found", Limit(low=0, high=1))

    def __post_init__(self) -> None:
        config.check("index approximate", self)


def approximate(command: Graph) -> None:
    """Build a graph for approximate search, measure it and keep it beside the index; for a million images and more.

    nearkin index approximate my.index --least 0.99
    """
    from nearkin.index.approximate import build

    quality = build(Index.open(command.index), command.least)
    print(
        f"{100 * quality.recall:.1f} % of the true ten nearest are found, {quality.milliseconds:.2f} ms a query "
        f"(exact: {quality.exact_milliseconds:.2f} ms), {quality.vectors:,} images; search with --approximate"
    )


@dataclass(frozen=True)
class Export:
    """The flags of ``nearkin index export``."""

    index: str = option("", "folder of the index", positional=True)
    to: str = option("parquet", "store", STORES)
    target: str = option("", "where: a file (parquet), a folder (lancedb, qdrant), an address (qdrant, pgvector)")
    name: str = option("images", "table or collection, which must be new")

    def __post_init__(self) -> None:
        config.check("index export", self)


def export(command: Export) -> None:
    """Copy an index to a store that serves many machines: ids, paths, classes and unit vectors.

    nearkin index export my.index --to parquet --target images.parquet
    nearkin index export my.index --to pgvector --target postgresql://me@host/pictures
    """
    from nearkin.index import export as stores
    from nearkin.train.screen import screen

    found = Index.open(command.index)
    shown = screen()
    try:
        with shown.job(f"writing to {command.to}") as tell:
            count = stores.export(found, command.to, command.target, command.name, tell)
    finally:
        shown.close()
    print(f"{wording.count(count, 'image')} in {command.to}, {command.target}")


def _query(found: Index, command: Search, number: int | None) -> tuple[Any, str | None]:
    """The vector to look for, and its class where it is an image of the index."""
    if number is not None:
        row = found.row(number)
        return found.vector(row.id), row.label or None
    if not Path(command.image).exists():
        raise ValueError(
            f"image must be a picture or the id of an image of the index, got {command.image!r}, which is neither; "
            f"check the path."
        )
    trained = found.model(command.device)
    path = str(Path(command.image).resolve())
    truth = next((row.label for row in found.rows() if row.path == path), None)
    return trained.embed(command.image)[0], truth or None


def _picture(found: Index, command: Search, number: int | None) -> Any:
    import io

    from PIL import Image

    from nearkin.data.decode import read_image

    if number is not None:
        return Image.open(io.BytesIO(found.thumbnail(number)))
    return Image.fromarray(read_image(Path(command.image), side=256))


def _add(found: Index, folder: str, trained: Any, workers: int, prune: bool, device: str = "auto") -> Added:
    from nearkin.train.screen import screen

    shown = screen()
    try:
        network = trained if trained is not None else found.model(device)
        with shown.job("embedding images") as tell:
            return found.add(folder, network, progress=tell, workers=workers or None, prune=prune)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"stopped; {wording.count(len(Index.open(found.folder)), 'image is', 'images are')} in the index, "
            f"go on with {calling.line('index', 'add', found.folder, folder)}."
        ) from None
    finally:
        shown.close()


def _draw(found: Index) -> None:
    """Make the map and keep it; stopped, the index is whole without it."""
    from nearkin.serve.plane import keep
    from nearkin.train.screen import screen

    shown = screen()
    try:
        with shown.job("drawing the map") as tell:
            keep(found, tell)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"stopped; the index is whole, and {calling.line('serve', found.folder)} draws its map when it is looked at."
        ) from None
    finally:
        shown.close()


def _say(found: Index, added: Added, name: str) -> None:
    parts = [f"{added.new:,} new", f"{added.changed:,} changed", f"{added.unchanged:,} unchanged"]
    if added.pruned:
        parts.append(f"{added.pruned:,} gone")
    print(f"{', '.join(parts)}; {wording.count(len(found), 'image')} in {name}")
    for path, reason in added.bad[:10]:
        print(f"left out {path}: {reason}")
    if len(added.bad) > 10:
        print(f"left out {len(added.bad) - 10:,} more")
    print(f"look for one with {calling.line('index', 'search', name, 'IMAGE')}")
