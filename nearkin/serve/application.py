"""The server: addresses of the page, and what each answers. Images have numbers; no address holds a path."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException as AnyHTTPException

from nearkin.data.decode import BadImage
from nearkin.serve import epoch_routes, run_routes
from nearkin.serve.collection import Collection
from nearkin.serve.derived import Derived
from nearkin.serve.files import colours, static
from nearkin.serve.folders import Folders
from nearkin.serve.guard import Guard
from nearkin.serve.picture import kind as kind_of
from nearkin.serve.runs import Runs
from nearkin.serve.search import NotFoundError, Search
from nearkin.serve.upload import MOST_BYTES, Uploads

KEEP = {"cache-control": "private, max-age=600"}
REPORT = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
)
"""The report is one file with everything inside; it is shown as a stranger that can ask this server for nothing."""
SENTENCES = {
    404: "There is nothing at this address; go back to the page.",
    405: "This address does not take such a request; go back to the page.",
}


def app(
    index: str | Path,
    *,
    host: str = "127.0.0.1",
    token: str = "",
    report: Path | None = None,
    results: Path | None = None,
    runs: Sequence[Path] = (),
    device: str = "cpu",
) -> Guard:
    """The page over an index as an ASGI application.

    ``host``: where it listens, which decides under which names it answers; ``token``: what visitors must know.
    ``report``: a page that nearkin report wrote; ``results``: the folder of a benchmark, whose runs are shown.
    ``runs``: folders that nearkin train wrote.
    """
    uploads = Uploads()
    collection = Collection(index, device)
    search = Search(collection, uploads)
    derived = Derived(collection)
    bench = Runs(results) if results is not None else None
    folders = Folders(runs) if runs else None
    files = static()

    @contextlib.asynccontextmanager
    async def living(inner: FastAPI) -> AsyncIterator[None]:
        # The first search should not wait for the network to load.
        threading.Thread(target=_warm, args=(collection,), daemon=True).start()
        yield
        await run_in_threadpool(uploads.close)

    made = FastAPI(lifespan=living, docs_url=None, redoc_url=None, openapi_url=None)
    _sentences(made)

    @made.get("/")
    def page() -> Response:
        content, kind = files["page.html"]
        return Response(content, media_type=kind)

    @made.get("/static/{name}")
    def file(name: str) -> Response:
        if name == "colours.css":
            return Response(colours(), media_type="text/css", headers={"cache-control": "no-cache"})
        if name not in files:
            raise HTTPException(404)
        content, kind = files[name]
        return Response(content, media_type=kind, headers={"cache-control": "no-cache"})

    @made.get("/api/index")
    def facts() -> dict[str, Any]:
        return {**collection.facts(), "report": report is not None, "runs": bench is not None or folders is not None}

    @made.get("/api/sample")
    def sample(seed: Annotated[int, Query(ge=0, le=2**31)] = 0) -> dict[str, Any]:
        return {"images": search.sample(seed)}

    @made.get("/api/search")
    def found(id: int | None = None, query: str = "", k: int = 48, label: str = "", again: str = "none") -> Any:
        if (id is None) == (not query):
            raise ValueError("A search must name an image by id or by query, got both or neither; give one.")
        return search.results(number=id, key=query, k=k, label=label, again=again)

    @made.post("/api/query")
    async def send(request: Request) -> dict[str, str]:
        content = await _body(request)
        query = await run_in_threadpool(search.send, content)
        return {"key": query.key}

    @made.get("/query/{key}")
    def picture_of_query(key: str) -> Response:
        found = search.picture_of_query(key)
        return Response(found, media_type=kind_of(found), headers=KEEP)

    @made.get("/thumbnail/{number}")
    def thumbnail(number: int) -> Response:
        found = search.thumbnail(number)
        return Response(found, media_type=kind_of(found), headers=KEEP)

    @made.get("/picture/{number}")
    def picture(number: int) -> Response:
        found = search.picture(number)
        return Response(found, media_type=kind_of(found), headers=KEEP)

    @made.get("/api/map")
    def plane() -> dict[str, Any]:
        found = derived.plane()
        return {"method": found.method, "final": found.final, "images": len(found.numbers)}

    @made.get("/api/map/points")
    def points() -> Response:
        return Response(derived.points(), media_type="application/octet-stream")

    @made.get("/api/recall")
    def recall() -> dict[str, Any]:
        return derived.recall()

    @made.get("/api/worst")
    def worst(count: Annotated[int, Query(ge=1, le=200)] = 24) -> dict[str, Any]:
        return derived.worst(count)

    @made.get("/api/doubts")
    def doubts(count: Annotated[int, Query(ge=1, le=200)] = 24) -> dict[str, Any]:
        return derived.doubts(count)

    @made.get("/api/losses")
    def losses() -> dict[str, Any]:
        from nearkin.serve.curves import listed

        return {"losses": listed()}

    @made.get("/api/curve")
    def curve(loss: str, settings: str = "{}") -> dict[str, Any]:
        from nearkin.serve.curves import curve

        return curve(loss, settings)

    run_routes.add(made, collection, bench, folders)
    epoch_routes.add(made, folders)

    @made.get("/report")
    def written() -> Response:
        if report is None:
            raise HTTPException(404)
        return Response(report.read_bytes(), media_type="text/html", headers={"content-security-policy": REPORT})

    return Guard(made, host=host, token=token)


def _warm(collection: Collection) -> None:
    with contextlib.suppress(Exception):  # whoever asks first gets the error
        collection.facts()
        collection.model()


async def _body(request: Request) -> bytes:
    """What was sent, unless it is too large: then no more of it is read."""
    said = request.headers.get("content-length", "0")
    parts, size = [], int(said) if said.isdigit() else 0
    if size <= MOST_BYTES:
        size = 0
        async for part in request.stream():
            size += len(part)
            if size > MOST_BYTES:
                break
            parts.append(part)
    if size > MOST_BYTES:
        raise HTTPException(413, f"The image must have at most {MOST_BYTES // 10**6} MB; send a smaller one.")
    return b"".join(parts)


def _sentences(made: FastAPI) -> None:
    """Every error is a sentence that the page can show."""

    def said(status: int, sentence: str) -> JSONResponse:
        return JSONResponse({"error": sentence}, status)

    @made.exception_handler(AnyHTTPException)
    async def plain(request: Request, error: AnyHTTPException) -> JSONResponse:
        own = SENTENCES.get(error.status_code, "This cannot be done; go back to the page.")
        return said(error.status_code, error.detail if error.status_code == 413 else own)

    @made.exception_handler(RequestValidationError)
    async def malformed(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        return said(422, f"{first['loc'][-1]} is not as it must be: {first['msg']}.")

    @made.exception_handler(NotFoundError)
    async def missing(request: Request, error: NotFoundError) -> JSONResponse:
        return said(404, str(error))

    @made.exception_handler(BadImage)
    async def bad(request: Request, error: BadImage) -> JSONResponse:
        return said(422, f"This image cannot be read: {error.reason}.")

    @made.exception_handler(ValueError)
    async def wrong(request: Request, error: ValueError) -> JSONResponse:
        return said(422, str(error))

    @made.exception_handler(Exception)
    async def unforeseen(request: Request, error: Exception) -> JSONResponse:
        return said(500, "The server met an error it does not know; what it printed says more.")
