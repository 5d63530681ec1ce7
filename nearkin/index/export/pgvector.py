"""PostgreSQL with the pgvector extension."""

from __future__ import annotations

from nearkin.index.export import Progress, batches
from nearkin.index.index import Index


def write(index: Index, target: str, name: str, progress: Progress | None) -> None:
    try:
        import psycopg
        from psycopg import sql
    except ImportError:
        raise ImportError(
            "psycopg must be installed for this, got none; run pip install 'nearkin[pgvector]'."
        ) from None
    try:
        connection = psycopg.connect(target)
    except psycopg.OperationalError as error:
        raise ValueError(
            f"target must be the address of a PostgreSQL that answers, got {str(error).strip().splitlines()[0]}; "
            f"pass, for example, postgresql://user@host/database."
        ) from None
    table = sql.Identifier(name)
    with connection, connection.cursor() as cursor:  # all of it or, if anything goes wrong, nothing
        try:
            cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
        except psycopg.Error as error:
            raise ValueError(
                f"the database must have the extension pgvector, got {str(error).strip().splitlines()[0]}; install it there."
            ) from None
        try:
            cursor.execute(
                sql.SQL("CREATE TABLE {} (id bigint PRIMARY KEY, path text, label text, vector vector({}))").format(
                    table, sql.Literal(index.dim)
                )
            )
        except psycopg.errors.DuplicateTable:
            raise ValueError(
                f"name must be new in the database, got {name!r}, which is there; choose another."
            ) from None
        columns = sql.SQL("COPY {} (id, path, label, vector) FROM STDIN").format(table)
        with cursor.copy(columns) as copy:
            for ids, paths, labels, vectors in batches(index, progress):
                for number, path, label, vector in zip(ids, paths, labels, vectors.tolist(), strict=True):
                    copy.write_row((number, path, label, f"[{','.join(map(repr, vector))}]"))
