"""The addresses about the epochs of runs on the map."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, HTTPException
from fastapi.responses import Response

from nearkin.serve.epochs import Epochs, Way
from nearkin.serve.folders import Folders

KEEP = {"cache-control": "private, max-age=600"}


def add(made: FastAPI, folders: Folders | None) -> None:
    """Let the server answer about the epochs that runs kept; without runs there is nothing at these addresses."""
    epochs = Epochs(folders) if folders is not None else None

    def find(run: str) -> Way:
        if epochs is None:
            raise HTTPException(404)
        return epochs.find(run)

    @made.get("/api/epochs")
    def listed() -> dict[str, Any]:
        return {"runs": epochs.names() if epochs is not None else []}

    @made.get("/api/epochs/facts")
    def facts(run: str) -> dict[str, Any]:
        return find(run).facts()

    @made.get("/api/epochs/points")
    def points(run: str) -> Response:
        return Response(find(run).points(), media_type="application/octet-stream")

    @made.get("/api/epochs/recall")
    def recall(run: str) -> dict[str, Any]:
        return {"recall": find(run).recalls()}

    @made.get("/epoch-image/{row}")
    def picture(row: int, run: str) -> Response:
        content, kind = find(run).picture(row)
        return Response(content, media_type=kind, headers=KEEP)
