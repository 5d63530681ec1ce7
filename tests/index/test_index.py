"""The index: what is added is found, what is removed is not, and no accident breaks it."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nearkin
from nearkin import calling
from nearkin.cli import main
from nearkin.data.decode import BadImage
from nearkin.index import Index, Row
from nearkin.index import change as module
from nearkin.index.exact import nearest
from nearkin.index.manifest import writing
from nearkin.index.rerank import expand, reciprocal
from nearkin.trained import Trained
from tests.index.conftest import draw
from tests.patience import PATIENCE, until

ROOT = Path(__file__).parents[2]


@pytest.fixture
def index(tmp_path: Path, photos: Path, trained: Trained) -> Index:
    made = Index.create(tmp_path / "my.index", trained)
    made.add(photos, trained, workers=0)
    return made


# ------------------------------------------------------------------------------------------------ search


def test_an_image_finds_itself_first(index: Index, photos: Path, trained: Trained) -> None:
    for path in sorted(photos.rglob("*.png")):
        first = trained.search(path, index, k=3)[0]
        assert first.path == str(path) and first.similarity == pytest.approx(1, abs=1e-5)
        assert first.label == path.parent.name


def test_the_order_is_that_of_all_cosines(index: Index, photos: Path, trained: Trained) -> None:
    paths = sorted(photos.rglob("*.png"))
    vectors = trained.embed(paths)
    for query in vectors[:4]:
        found = [hit.path for hit in index.search(query, 12)]
        expected = [str(paths[row]) for row in np.argsort(-(vectors @ query), kind="stable")]
        assert found == expected
    assert [hit.label for hit in index.search(vectors[0], 12, label="kind1")] == ["kind1"] * 4
    assert index.row(0).path not in [hit.path for hit in index.search(index.vector(0), 12, leave_out=[0])]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 30), st.integers(1, 12))
def test_blocks_give_the_exact_order(seed: int, rows: int, k: int, block: int) -> None:
    """Against sorting all of it; values from a few steps make many ties, which the lower number wins."""
    random = np.random.default_rng(seed)
    vectors = random.integers(-1, 2, (rows, 3)).astype(np.float32)
    queries = random.integers(-1, 2, (4, 3)).astype(np.float32)
    numbers = random.permutation(100)[:rows].astype(np.int64)
    counts = random.random(rows) < 0.7
    parts = [
        (vectors[begin : begin + block], numbers[begin : begin + block], counts[begin : begin + block])
        for begin in range(0, rows, block)
    ]
    found, scores = nearest(queries, parts, k)
    for query, places, values in zip(queries, found, scores, strict=True):
        order = sorted((-float(vectors[row] @ query), int(numbers[row])) for row in np.flatnonzero(counts))[:k]
        assert places.tolist() == [number for _, number in order] + [-1] * (k - len(order))
        assert values[: len(order)].tolist() == [-score for score, _ in order]


@pytest.mark.parametrize("again", ["expansion", "reciprocal"])
def test_a_second_look_orders_by_its_own_rule(index: Index, again: str) -> None:
    numbers, vectors = index.vectors()
    query = index.vector(4)
    found = index.search(query, 5, again=again, leave_out=[4])
    keep = numbers != 4
    if again == "expansion":
        plain = index.search(query, 5, leave_out=[4])
        wider = expand(query[None], np.stack([index.vector(hit.id) for hit in plain]))
        expected = numbers[keep][np.argsort(-(vectors[keep] @ wider[0]), kind="stable")][:5]
    else:
        order = np.argsort(-(vectors[keep] @ query), kind="stable")
        distance = reciprocal(np.concatenate([query[None], vectors[keep][order]]), 1)[0, 1:]
        expected = numbers[keep][order][np.argsort(distance, kind="stable")][:5]
    assert [hit.id for hit in found] == expected.tolist()
    assert [hit.similarity for hit in found] == pytest.approx([float(query @ index.vector(hit.id)) for hit in found])
    with pytest.raises(ValueError, match="again must be 'none' or 'expansion' or 'reciprocal', got 'twice'"):
        index.search(query, again="twice")


@pytest.mark.parametrize("again", ["none", "expansion", "reciprocal"])
@pytest.mark.parametrize("length", [1e-200, 5.0, 1e200])
def test_the_length_of_a_query_does_not_matter(index: Index, again: str, length: float) -> None:
    query = index.vector(4).astype(np.float64)
    expected, found = (index.search(vector, 5, again=again) for vector in (query, length * query))
    assert [hit.id for hit in found] == [hit.id for hit in expected]
    assert [hit.similarity for hit in found] == pytest.approx([hit.similarity for hit in expected], abs=1e-6)
    assert max(hit.similarity for hit in found) == pytest.approx(1, abs=1e-6)


def test_a_class_without_other_images_is_no_unknown_class(index: Index) -> None:
    own = [row.id for row in index.rows() if row.label == "kind1"]
    assert index.search(index.vector(own[0]), label="kind1", leave_out=own) == []


def test_an_empty_index_finds_nothing(tmp_path: Path, trained: Trained) -> None:
    empty = Index.create(tmp_path / "empty", trained)
    assert empty.search(np.ones(8), 5) == empty.search(np.ones(8), label="kind1") == [] and len(empty) == 0


# ------------------------------------------------------------------------------------------------ adding, removing


def test_adding_again_embeds_only_what_is_new(
    index: Index, photos: Path, trained: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded: list[int] = []
    real = Trained.embed_pixels

    def counted(self: Trained, images: list[np.ndarray]) -> np.ndarray:
        embedded.append(len(images))
        return real(self, images)

    monkeypatch.setattr(Trained, "embed_pixels", counted)
    assert index.add(photos, trained, workers=0) == module.Added(0, 0, 12)
    assert sum(embedded) == 0
    before = {row.path: row.id for row in index.rows()}
    draw(photos / "kind0" / "new.png", 77)
    changed = draw(photos / "kind1" / "0.png", 78)
    os.utime(changed, ns=(1, 1))
    found = index.add(photos, trained, workers=0)
    assert (found.new, found.changed, found.unchanged) == (1, 1, 11) and sum(embedded) == 2
    assert index.row(before[str(changed)]).path == str(changed)  # the number stays
    assert trained.search(changed, index, k=1)[0].id == before[str(changed)]
    assert len(index) == 13


def test_what_is_removed_is_not_found(index: Index, photos: Path, trained: Trained) -> None:
    victim = photos / "kind2" / "3.png"
    assert index.remove(str(victim)) == 1
    assert str(victim) not in [hit.path for hit in trained.search(victim, index, k=20)]
    assert index.remove(str(photos / "kind1")) == 4 and len(index) == 7
    assert set(index.labels()) == {"kind0", "kind2"}
    again = index.add(photos, trained, workers=0)
    assert again.new == 5 and len(index) == 12
    assert min(row.id for row in index.rows() if row.label == "kind1") >= 12  # numbers are never given twice


def test_a_folder_with_a_number_for_a_name_is_no_id(
    tmp_path: Path, trained: Trained, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(4):
        draw(tmp_path / "all" / str(number % 2) / f"{number}.png", number)
    index = Index.create(tmp_path / "my.index", trained)
    index.add(tmp_path / "all", trained, workers=0)
    monkeypatch.chdir(tmp_path / "all")
    assert main(["index", "remove", str(index.folder), "1"]) == 0
    assert "2 images removed, 2 left" in capsys.readouterr().out
    index.reload()
    assert {row.label for row in index.rows()} == {"0"}
    monkeypatch.chdir(tmp_path)
    assert main(["index", "remove", str(index.folder), "0"]) == 0  # no file here has that name
    assert "1 image removed, 1 left" in capsys.readouterr().out


@pytest.mark.parametrize(("command", "argument"), [("remove", "what"), ("search", "image")])
def test_a_raised_digit_is_no_id(index: Index, command: str, argument: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["index", command, str(index.folder), "\u00b2"]) == 2
    assert f"{argument} must be" in capsys.readouterr().err


def test_pruning_follows_the_disk(index: Index, photos: Path, trained: Trained) -> None:
    (photos / "kind0" / "1.png").unlink()
    assert index.add(photos, trained, workers=0).pruned == 0 and len(index) == 12
    assert index.add(photos, trained, workers=0, prune=True).pruned == 1 and len(index) == 11


def test_a_bad_image_is_named_and_left_out(tmp_path: Path, photos: Path, trained: Trained) -> None:
    (photos / "kind0" / "broken.png").write_bytes(b"nothing of the kind")
    made = Index.create(tmp_path / "i", trained)
    found = made.add(photos, trained, workers=0)
    assert (found.new, len(made)) == (12, 12)
    assert [Path(path).name for path, _ in found.bad] == ["broken.png"]
    assert "not an image" in found.bad[0][1]


def test_thumbnails_are_small_pictures(index: Index, photos: Path) -> None:
    import io

    from PIL import Image

    with Image.open(io.BytesIO(index.thumbnail(5))) as picture, Image.open(index.row(5).path) as source:
        assert picture.format == "WEBP" and picture.size == source.size
        difference = np.asarray(picture.convert("RGB"), int) - np.asarray(source.convert("RGB"), int)
        assert np.abs(difference).mean() < 40


# ------------------------------------------------------------------------------------------------ accidents


def test_compacting_changes_no_answer(index: Index, photos: Path, trained: Trained) -> None:
    for number in range(3):
        draw(photos / "kind0" / f"late{number}.png", 50 + number)
        index.add(photos, trained, workers=0)
    index.remove([0, 5])
    query = trained.embed(photos / "kind0" / "2.png")[0]
    before, pictures = index.search(query, 20), {row.id: index.thumbnail(row.id) for row in index.rows()}
    index.compact()
    assert len(index.segments) == 1 and not index.manifest.parts[0].gone
    after = index.search(query, 20)
    # How many rows are multiplied at once decides about the last digit.
    assert [(hit.id, hit.path, hit.label) for hit in after] == [(hit.id, hit.path, hit.label) for hit in before]
    assert [hit.similarity for hit in after] == pytest.approx([hit.similarity for hit in before], abs=1e-6)
    assert {row.id: index.thumbnail(row.id) for row in index.rows()} == pictures
    assert [path.name for path in (index.folder / "segments").iterdir()] == [index.manifest.parts[0].name]
    index.verify()


def test_many_removals_are_made_compact_by_themselves(index: Index) -> None:
    index.remove(list(range(5)))
    assert sum(part.size for part in index.manifest.parts) == len(index) == 7


def test_a_reader_keeps_its_snapshot(index: Index, photos: Path, trained: Trained) -> None:
    reader = Index.open(index.folder)
    index.remove(3)
    index.compact()
    query = trained.embed(photos / "kind0" / "3.png")[0]
    assert len(reader.search(query, 20)) == 12  # files stay open although they are gone from the folder
    reader.reload()
    assert len(reader.search(query, 20)) == 11


def test_two_writers_wait_for_each_other(index: Index) -> None:
    second = writing(index.folder, patience=0.2)
    with writing(index.folder), pytest.raises(ValueError, match="one writer at a time, got a second"), second:
        pass


def _adder(folder: str, photos: str) -> None:
    Index.open(folder).add(photos, workers=0)


def test_two_processes_add_at_once(tmp_path: Path, trained: Trained) -> None:
    made = Index.create(tmp_path / "i", trained)
    for part in range(2):
        for number in range(10):
            draw(tmp_path / f"part{part}" / "kind" / f"{number}.png", 100 * part + number)
    context = multiprocessing.get_context("spawn")
    both = [context.Process(target=_adder, args=(str(made.folder), str(tmp_path / f"part{n}"))) for n in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join(PATIENCE)
    assert [process.exitcode for process in both] == [0, 0]
    made.reload()
    made.verify()
    assert len(made) == 20 and len({row.id for row in made.rows()}) == 20


def test_a_killed_build_keeps_what_was_finished(
    tmp_path: Path, trained: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(60):
        draw(tmp_path / "many" / "kind" / f"{number}.png", number)
    made = Index.create(tmp_path / "i", trained)
    script = (
        "import sys, time; from nearkin.index import Index, change; from nearkin.trained import Trained\n"
        "change.CHUNK = 10; real = Trained.embed_pixels\n"
        "def slow(self, images):\n    time.sleep(0.2)\n    return real(self, images)\n"
        "Trained.embed_pixels = slow\n"
        "Index.open(sys.argv[1]).add(sys.argv[2], workers=0)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(made.folder), str(tmp_path / "many")], env=environment
    )
    until(lambda: len(Index.open(made.folder)) >= 20 or process.poll() is not None)
    process.send_signal(signal.SIGKILL)
    process.wait()
    (made.folder / "segments" / ".writing-999999").mkdir()  # what a writer killed in the middle leaves
    made.reload()
    made.verify()
    kept = len(made)
    assert 20 <= kept < 60 and kept % 10 == 0
    found = made.add(tmp_path / "many", trained, workers=0)
    assert (found.new, found.unchanged) == (60 - kept, kept) and len(made) == 60
    assert not (made.folder / "segments" / ".writing-999999").exists()


def test_damage_is_found(index: Index) -> None:
    path = index.folder / "segments" / index.manifest.parts[0].name / "thumbnails.bin"
    content = bytearray(path.read_bytes())
    content[3] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(ValueError, match="must be what was written, got a checksum of"):
        index.verify()


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"{}", "must be the manifest of an index, got"), (b'{"format": 9}', "format 9, this version reads 1")],
)
def test_another_manifest(index: Index, content: bytes, message: str) -> None:
    (index.folder / "index.json").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        Index.open(index.folder)


def test_another_network_is_refused(index: Index, photos: Path, trained: Trained) -> None:
    import torch

    with torch.no_grad():
        next(trained.model.parameters()).add_(1e-3)
    with pytest.raises(ValueError, match="must be the one the index was built with"):
        trained.search(photos / "kind0" / "0.png", index)
    draw(photos / "kind0" / "new.png", 5)
    with pytest.raises(ValueError, match="must be the one the index was built with"):
        index.add(photos, trained, workers=0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda i: i.search(np.ones(7)), "vector must be 8 finite numbers, got 7"),
        (
            lambda i: i.search(np.full(8, np.nan)),
            r"^vector must be 8 finite numbers, got some that are not finite; check the network that made it\.$",
        ),
        (
            lambda i: i.search(np.zeros(8)),
            "^vector must be 8 numbers that are not all 0, got zeros, which have no direction; check the network",
        ),
        (
            lambda i: i.search("a.jpg"),
            r"^vector must be 8 finite numbers, got str; "
            r"embed an image first with Trained\.embed, or use Trained\.search\.$",
        ),
        (
            lambda i: i.search(np.ones(8), label="kid1"),
            r"^label must be a class of the index, got 'kid1'; did you mean 'kind1'\?$",
        ),
        (lambda i: i.search(np.ones(8), 0), "k must be at least 1, got 0"),
        (lambda i: i.row(99), "id must be that of an image of the index, got 99"),
        (lambda i: i.remove(99), "got 99, which is none; nothing removed"),
        (lambda i: i.remove("no/such/folder"), "an id, a path or a folder of the index, got 'no/such/folder'"),
        (lambda i: Index.open("nowhere"), "index must be a folder with index.json, got 'nowhere'"),
    ],
)
def test_what_bad_input_gets(index: Index, call: object, message: str) -> None:
    before = (index.folder / "index.json").read_bytes()
    with pytest.raises((ValueError, TypeError), match=message):
        call(index)  # type: ignore[operator]
    assert (index.folder / "index.json").read_bytes() == before


# ------------------------------------------------------------------------------------------------ the command line


def test_from_a_run_to_a_search(tmp_path: Path, photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = (
        f"train --root {photos} --network small --network-settings grey=false width=4 --size 32 --resize 36 --dim 8 "
        f"--no-frozen-batch-norm --loss contrastive --batch 8 --images 4 --epochs 1 --warm-up 0 --device cpu "
        f"--packs {tmp_path / 'packs'} --out {tmp_path / 'run'} --threads 1 --data-settings ratio=0.67"
    )
    if main(run.split()) != 0:
        words = run.replace("--data-settings ratio=0.67", "")
        assert main(words.split()) == 0, capsys.readouterr().err
    out = tmp_path / "my.index"
    assert main(f"index build {tmp_path / 'run'} {photos} --out {out} --workers 1".split()) == 0
    shown = capsys.readouterr().out
    assert "12 new, 0 changed, 0 unchanged; 12 images" in shown
    assert f"look for one with {calling.line('index', 'search', out, 'IMAGE')}" in shown
    assert main(f"index info {out} --verify".split()) == 0
    shown = capsys.readouterr().out
    assert "12 images, 8 dimensions" in shown and "contrastive" in shown and "checksums all right" in shown
    query, picture = photos / "kind1" / "2.png", tmp_path / "strip.png"
    assert main(f"index search {out} {query} -k 4 --picture {picture}".split()) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[1:3] == ["1.000", "kind1"] and str(query) in lines[1] and picture.exists()
    assert main(f"index search {out} 3 -k 4 --label kind2".split()) == 0
    assert main(f"index remove {out} {query}".split()) == 0
    assert "1 image removed, 11 left" in capsys.readouterr().out
    assert main(f"index add {out} {photos} --workers 1".split()) == 0
    assert "1 new, 0 changed, 11 unchanged" in capsys.readouterr().out
    assert main(f"index build {tmp_path / 'run'} {photos} --out {out}".split()) == 2
    assert "which holds an index; use nearkin index add" in capsys.readouterr().err
    assert main(f"index search {out} {query} --label kind9".split()) == 2
    assert "did you mean" in capsys.readouterr().err
    assert main(f"index search {out} {tmp_path / 'run' / 'config.toml'}".split()) == 2
    assert "not an image" in capsys.readouterr().err
    assert main(f"index search {out} nothere.png".split()) == 2
    assert "got 'nothere.png', which is neither; check the path." in capsys.readouterr().err


def test_what_is_stopped_says_how_to_go_on(
    tmp_path: Path, photos: Path, trained: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nearkin.index.command import Search, _add, _draw, _graph

    found = Index.create(tmp_path / "my birds.index", trained)

    def stopped(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Index, "add", stopped)
    again = calling.line("index", "add", found.folder, photos)
    with pytest.raises(KeyboardInterrupt, match=re.escape(f"0 images are in the index, go on with {again}.")):
        _add(found, str(photos), trained, 0, False)
    monkeypatch.setattr("nearkin.serve.plane.keep", stopped)
    with pytest.raises(KeyboardInterrupt, match=re.escape(f"and {calling.line('serve', found.folder)} draws its map")):
        _draw(found)
    with pytest.raises(ValueError, match=re.escape(f"run {calling.line('index', 'approximate', found.folder)}.")):
        _graph(found, Search(index=str(found.folder), image="a.png"))


def test_the_map_is_drawn_when_the_index_is_built(
    tmp_path: Path, photos: Path, trained: Trained, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sklearn", reason="needs scikit-learn")
    trained.save(tmp_path / "model")
    for name, flag, kept in (("with", "", 1), ("without", "--no-map", 0)):
        out = tmp_path / name
        assert main(f"index build {tmp_path / 'model'} {photos} --out {out} --workers 1 {flag}".split()) == 0
        assert len(list(out.glob("map/map-*.npy"))) == kept
    assert "12 images in" in capsys.readouterr().out
    first = next((tmp_path / "with").glob("map/*"))
    (photos / "kind0" / "0.png").unlink()
    assert main(f"index add {tmp_path / 'with'} {photos} --workers 1 --prune".split()) == 0
    assert first.exists()  # nobody asked for another
    assert main(f"index add {tmp_path / 'with'} {photos} --workers 1 --prune --map".split()) == 0
    second = next((tmp_path / "with").glob("map/*"))
    assert not first.exists() and second.stat().st_size == 11 * 8


# ------------------------------------------------------------------------------------------------ the trained object


def test_every_kind_of_image_gives_the_same_vector(photos: Path, trained: Trained) -> None:
    from PIL import Image

    path = photos / "kind0" / "1.png"
    with Image.open(path) as picture:
        pixels = np.asarray(picture)
        kinds = [path, str(path), path.read_bytes(), picture.copy(), pixels]
    vectors = [trained.embed(kind) for kind in kinds] + [trained.embed([path])]
    for vector in vectors:
        assert vector.shape == (1, 8)
        np.testing.assert_allclose(vector, vectors[0], atol=1e-6)
    assert np.linalg.norm(vectors[0]) == pytest.approx(1)
    grey = np.zeros((40, 40), np.uint8)
    np.testing.assert_allclose(trained.embed(grey), trained.embed(np.zeros((40, 40, 3), np.uint8)), atol=1e-6)
    assert trained.embed([]).shape == (0, 8)
    with pytest.raises(TypeError, match="an image must be a path, a Pillow image or uint8 pixels"):
        trained.embed(np.zeros((4, 4, 3)))


def test_a_saved_network_is_the_same_again(tmp_path: Path, photos: Path, trained: Trained) -> None:
    trained.save(tmp_path / "model")
    again = nearkin.load(tmp_path / "model", "cpu")
    path = photos / "kind2" / "0.png"
    assert again.digest == trained.digest and again.facts == trained.facts
    np.testing.assert_array_equal(again.embed(path), trained.embed(path))
    facts = json.loads((tmp_path / "model" / "nearkin.json").read_bytes())
    (tmp_path / "model" / "nearkin.json").write_text(json.dumps(facts | {"format": 7}))
    with pytest.raises(ValueError, match="must have format 1, got 7"):
        nearkin.load(tmp_path / "model")
    with pytest.raises(ValueError, match="must be the folder of a run or of an exported model"):
        nearkin.load(tmp_path)


@pytest.mark.parametrize(("mode", "kind"), [("RGB", "jpeg"), ("CMYK", "jpeg"), ("RGB", "png"), ("F", "tiff")])
@pytest.mark.parametrize("orientation", [1, 6])
def test_a_pillow_image_is_read_like_its_file(
    tmp_path: Path, trained: Trained, mode: str, kind: str, orientation: int
) -> None:
    from PIL import Image

    file = draw(tmp_path / f"{mode}.png", 3)
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.open(file).convert(mode).save(tmp_path / f"photo.{kind}", exif=exif)
    with Image.open(tmp_path / f"photo.{kind}") as image:
        np.testing.assert_array_equal(trained.embed(image), trained.embed(tmp_path / f"photo.{kind}"))


def test_a_pillow_image_that_is_cut_short_is_named(tmp_path: Path, trained: Trained) -> None:
    from PIL import Image

    file = draw(tmp_path / "photo.png", 3)
    file.write_bytes(file.read_bytes()[:-60])
    with Image.open(file) as image, pytest.raises(BadImage, match="photo.png: it is cut short"):
        trained.embed(image)


def test_an_index_of_nothing_is_an_error_and_leaves_nothing(
    tmp_path: Path, trained: Trained, photos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained.save(tmp_path / "model")
    broken, out = tmp_path / "broken", tmp_path / "my.index"
    words = ["index", "build", str(tmp_path / "model")]
    rest = ["--out", str(out), "--device", "cpu", "--no-map"]
    broken.mkdir()
    assert main([*words, str(broken), *rest]) == 2 and not out.exists()
    (broken / "a.jpg").write_bytes(b"no image")
    capsys.readouterr()
    assert main([*words, str(broken), *rest]) == 2 and not out.exists()
    said = capsys.readouterr().err
    assert (
        f"folder must hold images that can be read, got none in '{broken}', such as" in said and "a.jpg: it is" in said
    )
    assert main([*words, str(photos), *rest]) == 0 and len(Index.open(out)) == 12


def test_classes_are_in_natural_order(tmp_path: Path, trained: Trained) -> None:
    index = Index.create(tmp_path / "i.index", trained)
    names = ["class10", "class2", "Zebra", "ant"]
    rows = [Row(-1, f"/x/{at}.png", name) for at, name in enumerate(names)]
    module.Change(index).append(rows, np.eye(4, index.dim, dtype=np.float32), [b"x"] * 4)
    assert list(Index.open(tmp_path / "i.index").labels()) == ["ant", "class2", "class10", "Zebra"]
