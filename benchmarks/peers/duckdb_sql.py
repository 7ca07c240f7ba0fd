"""DuckDB: SQL alone, the typed log as a table in memory, lists unnested, joined and gathered again."""

from __future__ import annotations

from pathlib import Path

import duckdb

from peers.job import DAY, FIRST, MAX_HISTORY, MAX_TAGS, MIN_COUNT, MISSING, SPLIT, UNKNOWN, VOCABULARY

TYPES = {
    "ts": "BIGINT", "user_id": "BIGINT", "creative_id": "BIGINT", "slot": "VARCHAR", "device": "VARCHAR",
    "city": "BIGINT", "os": "VARCHAR", "price": "VARCHAR", "history": "BIGINT[]", "tags": "VARCHAR[]",
    "click": "BIGINT", "conv_ts": "BIGINT",
}  # fmt: skip
GOOD = "price IS NULL OR price <> 'n/a'"


def read(database: duckdb.DuckDBPyConnection, source: Path) -> None:
    """Make the table ``log`` of the good rows, in order, with their numbers."""
    if source.suffix == ".jsonl":
        columns = ", ".join(f"{name}: '{kind}'" for name, kind in TYPES.items())
        rows = f"read_json(?, format = 'newline_delimited', columns = {{{columns}}})"
        lists = "list_distinct(tags) AS tags"
    else:
        kinds = {name: "VARCHAR" if kind.endswith("[]") else kind for name, kind in TYPES.items()}
        columns = ", ".join(f"'{name}': '{kind}'" for name, kind in kinds.items())
        rows = f"read_csv(?, header = true, columns = {{{columns}}})"
        lists = (
            "coalesce(string_split(history, '|')::BIGINT[], []) AS history, "
            "coalesce(list_distinct(string_split(tags, '|')), []) AS tags"
        )
    database.execute(
        f"CREATE TEMP TABLE log AS SELECT * REPLACE ({lists}) FROM {rows} WHERE {GOOD}", [str(source)]
    )


def fit(database: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """Make a table of value and id for each vocabulary; return their sizes."""
    seen = {name: f"SELECT {name} AS value FROM log WHERE ts < {SPLIT}" for name in MIN_COUNT}
    seen["tags"] = f"SELECT unnest(tags) AS value FROM log WHERE ts < {SPLIT}"
    seen["creative"] = (
        f"SELECT creative_id AS value FROM log WHERE ts < {SPLIT} "
        f"UNION ALL SELECT unnest(history) AS value FROM log WHERE ts < {SPLIT}"
    )
    sizes = {}
    for name, values in seen.items():
        database.execute(
            f"CREATE TEMP TABLE vocabulary_{name} AS "
            f"SELECT value, n, (row_number() OVER (ORDER BY n DESC, value::VARCHAR) + {FIRST - 1})::UINTEGER "
            "AS id "
            f"FROM (SELECT value, count(*) AS n FROM ({values}) WHERE value IS NOT NULL "
            f"GROUP BY value HAVING count(*) >= {MIN_COUNT[name]})"
        )
        sizes[name] = database.execute(f"SELECT count(*) FROM vocabulary_{name}").fetchall()[0][0] + FIRST
    return sizes


def encode(database: duckdb.DuckDBPyConnection) -> None:
    """Make the tables of encoded lists, by row."""
    database.execute(
        "CREATE TEMP TABLE history_ids AS "
        f"SELECT row, list(coalesce(id, {UNKNOWN}) ORDER BY place) AS ids FROM ("
        "SELECT row, unnest(history) AS value, generate_subscripts(history, 1) AS place "
        f"FROM (SELECT rowid AS row, history[-{MAX_HISTORY}:] AS history FROM log)"
        ") LEFT JOIN vocabulary_creative USING (value) GROUP BY row"
    )
    database.execute(
        "CREATE TEMP TABLE tag_ids AS "
        f"SELECT row, list_sort(list(coalesce(id, {UNKNOWN})))[:{MAX_TAGS}] AS ids "
        "FROM (SELECT rowid AS row, unnest(tags) AS value FROM log) "
        "LEFT JOIN vocabulary_tags USING (value) GROUP BY row"
    )


def write(database: duckdb.DuckDBPyConnection, out: Path) -> None:
    """Write both splits in the order of the rows, as Parquet without compression."""
    log_end = database.execute("SELECT greatest(max(ts), max(conv_ts)) FROM log").fetchall()[0][0]
    ids = ", ".join(
        f"CASE WHEN log.{name} IS NULL THEN {MISSING} "
        f"ELSE coalesce(v_{name}.id, {UNKNOWN}) END::UINTEGER AS {name}"
        for name in VOCABULARY
    )
    joins = " ".join(
        f"LEFT JOIN vocabulary_{vocabulary} AS v_{name} ON v_{name}.value = log.{name}"
        for name, vocabulary in VOCABULARY.items()
    )
    for split, chosen, until in (("train", f"ts < {SPLIT}", SPLIT), ("valid", f"ts >= {SPLIT}", log_end)):
        database.execute(
            f"COPY (SELECT {ids}, ln(1 + price::DOUBLE)::FLOAT AS price, "
            "coalesce(history_ids.ids, []) AS history, coalesce(tag_ids.ids, []) AS tags, "
            "log.click::FLOAT AS click, "
            f"CASE WHEN click = 1 AND ts <= {until - DAY} THEN coalesce("
            f"conv_ts - ts BETWEEN 0 AND {DAY} AND conv_ts <= {until}, false)::FLOAT END AS convert "
            f"FROM log {joins} LEFT JOIN history_ids ON history_ids.row = log.rowid "
            f"LEFT JOIN tag_ids ON tag_ids.row = log.rowid WHERE {chosen} ORDER BY log.rowid) "
            f"TO '{out / split}.parquet' (FORMAT parquet, COMPRESSION uncompressed)"
        )


def build(source: Path, out: Path) -> dict[str, int]:
    """Read, count, encode, write."""
    with duckdb.connect() as database:
        read(database, source)
        sizes = fit(database)
        encode(database)
        write(database, out)
        for name in sizes:
            database.execute(f"COPY vocabulary_{name} TO '{out}/vocabulary-{name}.parquet' (FORMAT parquet)")
    return sizes
