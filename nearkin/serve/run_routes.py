"""The addresses about runs and benchmarks: what was measured, their queries, their images, and leaks."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Query
from fastapi.responses import Response

from nearkin.serve.collection import Collection
from nearkin.serve.compare import Compare
from nearkin.serve.folders import Folders
from nearkin.serve.leaks import Leaks
from nearkin.serve.runs import Runs
from nearkin.serve.sources import Sources

KEEP = {"cache-control": "private, max-age=600"}
Count = Annotated[int, Query(ge=1, le=200)]


def add(made: FastAPI, collection: Collection, runs: Runs | None, folders: Folders | None) -> None:
    """Let the server answer about a benchmark and runs; without either it answers that there is nothing."""
    sources = Sources(runs, folders)
    compare, leaks = Compare(sources), Leaks(collection, sources)

    def needed() -> None:
        if runs is None and folders is None:
            raise HTTPException(404)

    @made.get("/api/runs")
    def facts() -> dict[str, Any]:
        needed()
        return {
            "bench": None if runs is None else runs.facts(),
            "folders": None if folders is None else folders.facts(),
        }

    @made.get("/api/sources")
    def listed() -> dict[str, Any]:
        return sources.facts()

    @made.get("/api/compare")
    def compared(one: str, other: str, count: Count = 12) -> dict[str, Any]:
        needed()
        return compare.queries(one, other, count)

    @made.get("/api/failing")
    def failing(of: str, count: Count = 12) -> dict[str, Any]:
        needed()
        return compare.worst(of, count)

    @made.get("/api/pictures")
    def pictures(of: str) -> dict[str, Any]:
        needed()
        return compare.pictures(sources.find(of))

    @made.get("/api/leaks")
    def leaking(of: str, count: Count = 24) -> dict[str, Any]:
        needed()
        return leaks.facts(of, count)

    @made.get("/test-image/{row}")
    def test_image(row: int, of: str) -> Response:
        return _picture("test", row, of)

    @made.get("/training-image/{row}")
    def training_image(row: int, of: str) -> Response:
        return _picture("training", row, of)

    def _picture(part: str, row: int, of: str) -> Response:
        needed()
        content, kind = sources.images(sources.find(of)).picture(part, row)
        return Response(content, media_type=kind, headers=KEEP)
