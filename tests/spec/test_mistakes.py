"""Every mistake: its line, its words, and that the advice in them works."""

# ruff: noqa: E501 - messages are single lines

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headrace.errors import SpecError
from headrace.spec import Attribution, Categorical, Hashed, Numeric, Sequence, Source, Spec

BASE = """\
name = "ads"
version = 3
[source]
files = "raw/*.jsonl"
[time]
column = "ts"
[split]
by = "time"
train = { until = 2025-06-01 }
valid = { from = 2025-06-08, until = 2025-06-15 }
[vocabularies.creative]
[features.user_id]
kind = "categorical"
[features.creative_id]
kind = "categorical"
vocabulary = "creative"
[features.history]
kind = "sequence"
vocabulary = "creative"
time = "history_ts"
max_length = 50
[labels.click]
kind = "binary"
[labels.convert]
kind = "attribution"
click_time = "ts"
convert_time = "conv_ts"
window = "7d"
given = "click"
[tables.ad]
files = "raw/ads.csv"
columns = ["creative_id", "brand", "words"]
key = "creative_id"
"""


def mistakes(text: str, folder: Path) -> list[str]:
    """Return the messages about a spec, each without the folder of its file."""
    path = folder / "ads.toml"
    path.write_text(text, encoding="utf-8")
    try:
        Spec.load(path)
    except SpecError as error:
        return [line.removeprefix(f"{folder}{os.sep}") for line in str(error).split("\n")]
    return []


def changed(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert text.count(old) >= 1, old
        text = text.replace(old, new, 1)
    return text


def test_the_base_has_no_mistake(tmp_path: Path) -> None:
    assert mistakes(BASE, tmp_path) == []


USER = '[features.user_id]\nkind = "categorical"\n'
HISTORY = 'time = "history_ts"\nmax_length = 50\n'
WINDOW = 'window = "7d"\n'

# What is changed in the base, the one message, and the change that it advises.
ONE_MISTAKE = [
    ("version = 3", 'version = "3"', 'ads.toml:2: version: expected an integer, found "3".', "version = 4"),
    ("version = 3", "version = -1", "ads.toml:2: version: expected at least 0, found -1.", "version = 0"),
    ("version = 3", "version = true", "ads.toml:2: version: expected an integer, found true.", "version = 1"),
    ("version = 3", "verson = 3", "ads.toml:2: unknown key 'verson'. Did you mean 'version'?", "version = 3"),
    ('name = "ads"', "", "ads.toml:1: the key 'name' is missing.", 'name = "x"'),
    (
        'name = "ads"',
        'name = ""',
        'ads.toml:1: name: expected a text that is not empty, found "".',
        'name = "x"',
    ),
    (
        "[source]",
        "[sources]",
        "ads.toml:1: the key 'source' is missing.\nads.toml:3: unknown key 'sources'. Did you mean 'source'?",
        "[source]",
    ),
    (
        'files = "raw/*.jsonl"',
        "files = []",
        "ads.toml:3: source: the key 'format' is missing.\nads.toml:4: source.files: expected a list of at least 1, found an empty list.",
        'files = ["a.jsonl"]',
    ),
    (
        'files = "raw/*.jsonl"',
        'files = "raw/*"',
        "ads.toml:3: source: the key 'format' is missing.",
        'format = "csv"\nfiles = "raw/*"',
    ),
    (
        'files = "raw/*.jsonl"',
        'files = ["a.csv", "b.tsv"]',
        "ads.toml:3: source: the key 'format' is missing.",
        'files = ["a.csv", "b.csv"]',
    ),
    (
        'files = "raw/*.jsonl"',
        'files = "raw/*.jsonl"\ndelimiter = ";"',
        'ads.toml:5: source.delimiter: is for csv and tsv, and the format here is "jsonl". Leave it out.',
        'files = "raw/*.jsonl"',
    ),
    (
        'files = "raw/*.jsonl"',
        'files = "a.tsv"\ndelimiter = ";"',
        'ads.toml:5: source.delimiter: is for csv, and the format here is "tsv". Leave it out.',
        'files = "a.tsv"',
    ),
    (
        'files = "raw/*.jsonl"',
        'files = "a.parquet"\nencoding = "latin-1"',
        'ads.toml:5: source.encoding: is for text formats, and the format here is "parquet". Leave it out.',
        'files = "a.parquet"',
    ),
    (
        'files = "raw/*.jsonl"',
        'files = "a.csv"\ndelimiter = ";;"',
        'ads.toml:5: source.delimiter: expected one character, found ";;".',
        'files = "a.csv"\ndelimiter = ";"',
    ),
    (
        'files = "raw/*.jsonl"',
        'files = "a.csv"\nquote = ","',
        'ads.toml:5: source.quote: expected one other character, or "", found ",".',
        'files = "a.csv"\nquote = ""',
    ),
    (
        'files = "raw/*.jsonl"',
        'files = "a.csv"\nencoding = "utf8-8"',
        "ads.toml:5: source.encoding: Python knows no encoding \"utf8-8\". Did you mean 'utf-8'?",
        'files = "a.csv"\nencoding = "utf-8"',
    ),
    (
        'files = "raw/*.jsonl"',
        'files = "a.csv"\nheader = false',
        "ads.toml:5: source: with header = false the key 'columns' must name the columns.",
        'files = "a.csv"\nheader = false\ncolumns = ["user_id","creative_id","history","history_ts","ts","click","conv_ts"]',
    ),
    (
        'files = "raw/*.jsonl"',
        'files = "a.csv"\nmax_bad_fraction = 2',
        "ads.toml:5: source.max_bad_fraction: expected at most 1, found 2.",
        'files = "a.csv"\nmax_bad_fraction = 1',
    ),
    (
        'files = "raw/*.jsonl"',
        'files = "a.csv"\non_bad_row = "drop"',
        'ads.toml:5: source.on_bad_row: expected "quarantine" or "fail", found "drop".',
        'files = "a.csv"\non_bad_row = "fail"',
    ),
    (
        'files = "raw/*.jsonl"',
        'files = "a.csv"\ncolumns = ["user_id","creative_id","history","history_ts","ts","clik","conv_ts"]',
        "ads.toml:23: labels.click.column: [source] names its columns, and \"click\" is none of them. Did you mean 'clik'?",
        'files = "a.csv"\ncolumns = ["user_id","creative_id","history","history_ts","ts","click","conv_ts"]',
    ),
    (
        '[time]\ncolumn = "ts"',
        '[time]\ncolumn = "ts"\nunit = "m"',
        'ads.toml:7: time.unit: expected "s", "ms", "us" or "ns", found "m".',
        '[time]\ncolumn = "ts"\nunit = "ms"',
    ),
    (
        '[time]\ncolumn = "ts"',
        '[time]\ncolumn = "ts"\nunit = "s"\nformat = "%Y"',
        "ads.toml:7: time.unit: is for numbers and 'format' for text. Leave one of them out.",
        '[time]\ncolumn = "ts"\nformat = "%Y"',
    ),
    (
        '[time]\ncolumn = "ts"',
        '[time]\ncolumn = "ts"\nformat = "%Y-%Q"',
        "ads.toml:7: time.format: %Q is no directive of a time; there are %Y %y %m %b %B %d %j %H %I %p %M %S %f %z %%.",
        '[time]\ncolumn = "ts"\nformat = "%Y-%j"',
    ),
    (
        'by = "time"',
        'by = "tine"',
        'ads.toml:8: split.by: found "tine", expected one of "time", "random", "group", "column", "file". Did you mean \'time\'?',
        'by = "time"',
    ),
    (
        'by = "time"',
        "",
        'ads.toml:7: split: the key \'by\' is missing: one of "time", "random", "group", "column", "file".',
        'by = "time"',
    ),
    (
        "train = { until = 2025-06-01 }",
        "train = {}",
        "ads.toml:9: split.train: needs 'from' or 'until'.",
        "train = { until = 2025-06-02 }",
    ),
    (
        "train = { until = 2025-06-01 }",
        "train = 0.8",
        "ads.toml:9: split.train: expected a table, found 0.8.",
        "train = { until = 2025-06-02 }",
    ),
    (
        "train = { until",
        "trian = { until",
        "ads.toml:7: split: the key 'train' is missing.\nads.toml:9: split: unknown key 'trian'. Did you mean 'train'?",
        "train = { until",
    ),
    (
        "train = { until = 2025-06-01 }",
        "train = { untl = 2025-06-01 }",
        "ads.toml:9: split.train: unknown key 'untl'. Did you mean 'until'?\nads.toml:9: split.train: needs 'from' or 'until'.",
        "train = { until = 2025-06-02 }",
    ),
    (
        "train = { until = 2025-06-01 }",
        "train = { until = 2025-07-01 }",
        "ads.toml:10: split.valid: overlaps 'train': a row would be in both. Write 'from' and 'until'.",
        "train = { until = 2025-06-02 }",
    ),
    (
        "until = 2025-06-15",
        "until = 2025-06-08",
        "ads.toml:10: split.valid: 'from' must be before 'until'.",
        "until = 2025-06-09",
    ),
    (
        "until = 2025-06-15",
        'until = "soon"',
        'ads.toml:10: split.valid.until: "soon" is no ISO date or time, such as 2025-06-01 or 2025-06-01T12:00:00Z.',
        'until = "2025-06-15"',
    ),
    (
        'by = "time"',
        'by = "time"\nunit = "ms"',
        "ads.toml:9: split.unit: is that of 'column' here; the unit of the row's time stands in [time].",
        'by = "time"\nunit = "ms"\ncolumn = "other"',
    ),
    (
        'by = "time"',
        'by = "time"\nrequire_gp = true',
        "ads.toml:9: split: unknown key 'require_gp'. Did you mean 'require_gap'?",
        'by = "time"\nrequire_gap = true',
    ),
    (
        "[vocabularies.creative]",
        "[vocabularies.creative]\nmin_count = 0",
        "ads.toml:12: vocabularies.creative.min_count: expected at least 1, found 0.",
        "[vocabularies.creative]\nmin_count = 1",
    ),
    (
        "[vocabularies.creative]",
        "[vocabularies.creative]\nmin_cout = 5",
        "ads.toml:12: vocabularies.creative: unknown key 'min_cout'. Did you mean 'min_count'?",
        "[vocabularies.creative]\nmin_count = 5",
    ),
    (
        "[vocabularies.creative]",
        '[vocabularies.creative]\nunseen = "hash"',
        "ads.toml:12: vocabularies.creative: unseen = \"hash\" needs the key 'unknown_buckets', at least 1.",
        '[vocabularies.creative]\nunseen = "hash"\nunknown_buckets = 1',
    ),
    (
        "[vocabularies.creative]",
        "[vocabularies.creative]\nunknown_buckets = 9",
        'ads.toml:12: vocabularies.creative.unknown_buckets: has no meaning with unseen = "unknown". Write unseen = "hash", or leave it out.',
        '[vocabularies.creative]\nunknown_buckets = 9\nunseen = "hash"',
    ),
    (
        "[vocabularies.creative]",
        '[vocabularies.creative]\nfrom = "stores/a"\nmin_count = 1',
        "ads.toml:13: vocabularies.creative.min_count: has no meaning beside 'from': the keys of that vocabulary hold. Leave it out.",
        '[vocabularies.creative]\nfrom = "stores/a"',
    ),
    (
        "[vocabularies.creative]",
        "[vocabularies.creative]\nreserved = { unknown = 0, missing = 2 }",
        "ads.toml:12: vocabularies.creative.reserved.missing: expected at most 1, found 2: no id may be left out.",
        "[vocabularies.creative]\nreserved = { unknown = 0, missing = 1 }",
    ),
    (
        "[vocabularies.creative]",
        "[vocabularies.creative]\nreserved = { pad = 1 }",
        "ads.toml:12: vocabularies.creative.reserved.pad: expected 0, found 1.",
        "[vocabularies.creative]\nreserved = { pad = 0 }",
    ),
    (
        USER,
        USER + 'vocabulary = "creativ"\n',
        "ads.toml:14: features.user_id.vocabulary: there is no [vocabularies.creativ]. Did you mean 'creative'?",
        USER + 'vocabulary = "creative"\n',
    ),
    (
        USER,
        USER + 'vocabulary = "history"\n',
        "ads.toml:14: features.user_id.vocabulary: there is no [vocabularies.history].",
        None,
    ),
    (
        USER,
        USER + 'vocabulary = "tag"\n[features.tag]\nkind = "categorical"\n',
        "ads.toml:14: features.user_id.vocabulary: there is no [vocabularies.tag]. features.tag has its vocabulary to itself; write [vocabularies.tag] to share one.",
        USER
        + 'vocabulary = "tag"\n[features.tag]\nkind = "categorical"\nvocabulary = "tag"\n[vocabularies.tag]\n',
    ),
    (
        USER,
        USER + 'vocabulary = "creative"\nmin_count = 1\n',
        "ads.toml:15: features.user_id.min_count: has no meaning beside 'vocabulary': the keys of that vocabulary hold. Leave it out.",
        USER + 'vocabulary = "creative"\n',
    ),
    (
        USER,
        USER + 'vocabulary = "creative"\nfrom = "s"\n',
        "ads.toml:15: features.user_id.from: has no meaning beside 'vocabulary'. Write it in that [vocabularies] table.",
        USER + 'from = "s"\n',
    ),
    (
        USER,
        USER + 'missing = "none"\n',
        'ads.toml:14: features.user_id.missing: expected "own", "unknown" or "pad", found "none".',
        USER + 'missing = "pad"\n',
    ),
    (
        USER,
        "[features.user_id]\n",
        'ads.toml:12: features.user_id: the key \'kind\' is missing: one of "categorical", "sequence", "set", "weighted_set", "numeric", "time", "cross", "hashed", "vector".',
        USER,
    ),
    (
        USER,
        '[features]\nuser_id = "categorical"\n',
        'ads.toml:13: features.user_id: expected a table, found "categorical".',
        USER,
    ),
    (
        USER,
        USER + '[features.creative]\nkind = "categorical"\n',
        'ads.toml:14: features.creative: has a vocabulary of its own, of the same name as [vocabularies.creative]. Write vocabulary = "creative" to share that one, or rename one.',
        USER + '[features.creative]\nkind = "categorical"\nvocabulary = "creative"\n',
    ),
    (
        USER,
        USER + '[features.history_mask]\nkind = "vector"\ndim = 2\n',
        "ads.toml:20: features.history: its array 'history_mask' is also given by features.history_mask. Each array has its own name: rename one.",
        USER + '[features.mask]\ncolumn = "history_mask"\nkind = "vector"\ndim = 2\n',
    ),
    (
        USER,
        USER + '[features.valid]\nkind = "hashed"\nbuckets = 2\n',
        "ads.toml:14: features.valid: its array 'valid' is also given by the loader. Each array has its own name: rename one.",
        USER + '[features.is_valid]\ncolumn = "valid"\nkind = "hashed"\nbuckets = 2\n',
    ),
    (
        USER,
        USER + '[features.click]\nkind = "numeric"\n',
        "ads.toml:24: labels.click: its array 'click' is also given by features.click. Each array has its own name: rename one.",
        None,
    ),
    (
        USER,
        USER + '[features."a/b"]\nkind = "numeric"\n',
        "ads.toml:14: features.\"a/b\": is no name here; one has letters, digits and '_', inside also '-', '.' and blanks, and at most 200 bytes.",
        USER + '[features.a-b]\nkind = "numeric"\n',
    ),
    (
        USER,
        USER + '[features.x]\nkind = "hashed"\nbuckets = 1\n',
        "ads.toml:16: features.x.buckets: expected at least 2, found 1.",
        None,
    ),
    (
        USER,
        USER + '[features.x]\nkind = "cross"\nbuckets = 2\ncolumns = ["a"]\n',
        'ads.toml:17: features.x.columns: a cross needs at least two columns, found 1. Use "hashed".',
        USER + '[features.x]\nkind = "hashed"\nbuckets = 2\n',
    ),
    (
        USER,
        USER + '[features.x]\nkind = "cross"\nbuckets = 2\ncolumns = ["a", "a"]\n',
        'ads.toml:17: features.x.columns[1]: "a" is written twice.',
        None,
    ),
    (
        USER,
        USER + '[features.x]\nkind = "numeric"\nmissing = "0"\n',
        'ads.toml:16: features.x.missing: expected a number, found "0".',
        USER + '[features.x]\nkind = "numeric"\nmissing = 0\n',
    ),
    (
        USER,
        USER + '[features.x]\nkind = "numeric"\nmissing = nan\n',
        "ads.toml:16: features.x.missing: expected a finite number, found nan.",
        None,
    ),
    (
        USER,
        USER + '[features.x]\nkind = "numeric"\nmissing = -1e39\n',
        "ads.toml:16: features.x.missing: -1e+39 is beyond float32, which is what a store holds.",
        USER + '[features.x]\nkind = "numeric"\nmissing = -3.4e38\n',
    ),
    (
        USER,
        USER + '[features.x]\nkind = "numeric"\nbuckets = 9\n',
        'ads.toml:16: features.x.buckets: has no meaning with transform = "none". Write "bucketize".',
        USER + '[features.x]\nkind = "numeric"\nbuckets = 9\ntransform = "bucketize"\n',
    ),
    (
        USER,
        USER + '[features.x]\nkind = "numeric"\ntransform = "bucketize"\n',
        "ads.toml:16: features.x: transform = \"bucketize\" needs the key 'buckets'.",
        USER + '[features.x]\nkind = "numeric"\nbuckets = 9\ntransform = "bucketize"\n',
    ),
    (
        USER,
        USER + '[features.x]\nkind = "numeric"\ntransform = "bucketize"\nbuckets = 4\nmissing = 0.0\n',
        "ads.toml:18: features.x.missing: has no meaning with bucketize, where a missing value has an id of its own.",
        None,
    ),
    (
        USER,
        USER + '[features.x]\nkind = "weighted_set"\nmax_length = 2\nseparator = ":"\n',
        "ads.toml:14: features.x.pair_separator: is \":\", as is 'separator'. They must differ.",
        USER + '[features.x]\nkind = "weighted_set"\nmax_length = 2\nseparator = ":"\npair_separator = "="\n',
    ),
    (
        USER,
        USER + '[features.x]\nkind = "time"\npart = "hours"\n',
        'ads.toml:16: features.x.part: expected "second", "minute", "hour", "weekday", "day", "dayofyear", "week", "month", "quarter" or "year", found "hours".',
        None,
    ),
    (
        USER,
        USER + '[features.x]\nkind = "vector"\n',
        "ads.toml:14: features.x: the key 'dim' is missing.",
        USER + '[features.x]\nkind = "vector"\ndim = 3\n',
    ),
    (
        USER,
        USER + '[features.x]\nkind = "numeric"\ncolumn = "ad.brnd"\n',
        "ads.toml:16: features.x.column: the table 'ad' has no column \"brnd\". Did you mean 'brand'?",
        USER + '[features.x]\nkind = "numeric"\ncolumn = "ad.brand"\n',
    ),
    (HISTORY, "", "ads.toml:17: features.history: the key 'max_length' is missing.", "max_length = 2\n"),
    (
        HISTORY,
        HISTORY + "max_lenth = 5\n",
        "ads.toml:22: features.history: unknown key 'max_lenth'. Did you mean 'max_length'?",
        HISTORY,
    ),
    (
        HISTORY,
        HISTORY + 'lag = "1h"\n',
        "ads.toml:22: features.history.lag: has a meaning only beside 'from', a table of events.",
        HISTORY,
    ),
    (
        HISTORY,
        HISTORY + 'from = "event"\n',
        "ads.toml:22: features.history.from: there is no [tables.event].",
        None,
    ),
    (
        HISTORY,
        'max_length = 50\nfrom = "ad"\ncolumn = "creative_id"\n',
        "ads.toml:21: features.history: a history from events needs the key 'time', the events' time column.",
        'max_length = 50\nfrom = "ad"\ntime = "words"\ncolumn = "creative_id"\n',
    ),
    (
        'kind = "binary"',
        'kind = "bin"',
        'ads.toml:23: labels.click.kind: found "bin", expected one of "binary", "continuous", "class", "attribution". Did you mean \'binary\'?',
        'kind = "binary"',
    ),
    (
        'kind = "binary"',
        'kind = "continuous"',
        "ads.toml:29: labels.convert.given: labels.click is of kind continuous; a label is given by one of kind binary.",
        'kind = "binary"',
    ),
    (
        'kind = "binary"',
        'kind = "binary"\nat_least = "3"',
        'ads.toml:24: labels.click.at_least: expected a number, found "3".',
        'kind = "binary"\nat_least = 3',
    ),
    (
        WINDOW,
        'window = "7 days"\n',
        'ads.toml:28: labels.convert.window: "7 days" is no duration; write whole numbers with w, d, h, m, s, ms or us, such as "7d", "12h" or "1d12h".',
        'window = "1d12h"\n',
    ),
    (
        WINDOW,
        "window = 7\n",
        'ads.toml:28: labels.convert.window: expected a duration such as "7d", found 7.',
        WINDOW,
    ),
    (
        WINDOW,
        'window = "0s"\n',
        "ads.toml:28: labels.convert.window: expected a duration of more than 0.",
        'window = "1us"\n',
    ),
    (
        WINDOW,
        WINDOW + 'observed_until = "lg"\n',
        'ads.toml:29: labels.convert.observed_until: expected "split", "log" or a time: "lg" is no ISO date or time, such as 2025-06-01 or 2025-06-01T12:00:00Z.',
        WINDOW + 'observed_until = "2025-07-01"\n',
    ),
    (
        WINDOW,
        WINDOW + 'censored = "masked"\n',
        'ads.toml:29: labels.convert.censored: expected "mask", "drop" or "keep", found "masked".',
        WINDOW + 'censored = "mask"\n',
    ),
    (
        'given = "click"',
        'given = "clck"',
        "ads.toml:29: labels.convert.given: there is no [labels.clck]. Did you mean 'click'?",
        'given = "click"',
    ),
    (
        'convert_time = "conv_ts"',
        'convert_time = "ts"',
        "ads.toml:27: labels.convert.convert_time: is \"ts\", as is 'click_time'. They must differ.",
        'convert_time = "conv"',
    ),
    ('key = "creative_id"', "", "ads.toml:30: tables.ad: the key 'key' is missing.", 'key = "brand"'),
    (
        'key = "creative_id"',
        'key = "creativ"',
        "ads.toml:33: tables.ad.key: the table has no column \"creativ\". Did you mean 'creative_id'?",
        'key = "creative_id"',
    ),
    (
        'key = "creative_id"',
        'gather = "load"\nkey = "brand"',
        'ads.toml:33: tables.ad: gather = "load" gathers by id, and no feature with a vocabulary has the column "brand". Declare one, or write gather = "encode".',
        'gather = "load"\nkey = "creative_id"',
    ),
    (
        "[tables.ad]",
        '[weight]\ncolumn = "ad.brand"\n[tables.ad]\ngather = "load"',
        'ads.toml:31: weight.column: "ad.brand" is of a table that is gathered when loading, and is needed before that. Write gather = "encode" in [tables.ad].',
        '[weight]\ncolumn = "ad.brand"\n[tables.ad]\ngather = "encode"',
    ),
    (
        "[tables.ad]",
        '[tables."ad.x"]',
        'ads.toml:30: tables."ad.x": the name of a table has no dot, since paths such as ad.industry begin with it.',
        "[tables.adx]",
    ),
    (
        "[tables.ad]",
        '[weight]\ncolum = "w"\n[tables.ad]',
        "ads.toml:30: weight: the key 'column' is missing.\nads.toml:31: weight: unknown key 'colum'. Did you mean 'column'?",
        '[weight]\ncolumn = "w"\n[tables.ad]',
    ),
    (
        "[tables.ad]",
        "[id]\ncolumn = 3\n[tables.ad]",
        "ads.toml:31: id.column: expected a text, found 3.",
        '[id]\ncolumn = "3"\n[tables.ad]',
    ),
]


@pytest.mark.parametrize(("old", "new", "said", "mended"), ONE_MISTAKE)
def test_each_mistake_is_said_and_can_be_mended(
    old: str, new: str, said: str, mended: str | None, tmp_path: Path
) -> None:
    assert mistakes(changed(BASE, (old, new)), tmp_path) == said.split("\n")
    if mended is not None:
        assert mistakes(changed(BASE, (old, mended)), tmp_path) == []


GAP = ("valid = { from = 2025-06-08", "valid = { from = 2025-06-02")


def test_a_short_purge_gap_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "ads.toml").write_text(changed(BASE, GAP))
    spec = Spec.load(tmp_path / "ads.toml")
    assert spec.warnings == (
        "split: the purge gap after train is 1d, shorter than the window of labels.convert, 7d: "
        "conversions of train's last clicks fall into the next split. Leave 7d between them.",
    )
    assert Spec.load(_written(tmp_path, BASE)).warnings == ()


def _written(folder: Path, text: str) -> Path:
    path = folder / "other.toml"
    path.write_text(text)
    return path


def test_a_short_purge_gap_is_an_error_where_one_is_required(tmp_path: Path) -> None:
    required = ('by = "time"', 'by = "time"\nrequire_gap = true')
    assert mistakes(changed(BASE, required), tmp_path) == []
    found = mistakes(changed(BASE, required, GAP), tmp_path)
    assert len(found) == 1
    assert found[0].startswith("ads.toml:9: split: the purge gap after train is 1d, shorter than the window")


def test_other_warnings(tmp_path: Path) -> None:
    text = BASE.replace('vocabulary = "creative"\n', "").replace(
        "valid = {", "late = { until = 2020-01-01 }\nvalid = {"
    )
    text = text.replace("train = { until", "train = { from = 2021-01-01, until")
    assert Spec.load(_written(tmp_path, text)).warnings == (
        "vocabularies.creative: no feature uses it, so it is not fitted.",
        "split.late: lies before train: a model is tested on what came before it.",
    )


def test_times_need_the_time_of_the_row(tmp_path: Path) -> None:
    assert mistakes(BASE.replace('[time]\ncolumn = "ts"\n', ""), tmp_path) == [
        "ads.toml:6: split: a split by time needs the row's time: write [time] with its 'column', or 'column' here.",
        "ads.toml:18: features.history.time: the times of a sequence must be before the row's time: "
        "write [time] with its 'column'.",
    ]


def test_what_a_broken_table_holds_is_not_missed_elsewhere(tmp_path: Path) -> None:
    text = changed(
        BASE,
        ('[time]\ncolumn = "ts"', '[time]\ncolumn = "ts"\nunit = "m"'),
        ("[vocabularies.creative]", "[vocabularies.creative]\nmax_size = 0"),
        ('kind = "binary"', 'kind = "binary"\nat_last = 3'),
        ('key = "creative_id"', ""),
    )
    assert mistakes(text, tmp_path) == [
        'ads.toml:7: time.unit: expected "s", "ms", "us" or "ns", found "m".',
        "ads.toml:13: vocabularies.creative.max_size: expected at least 1, found 0.",
        "ads.toml:26: labels.click: unknown key 'at_last'. Did you mean 'at_least'?",
        "ads.toml:33: tables.ad: the key 'key' is missing.",
    ]


def test_all_mistakes_in_one_run(tmp_path: Path) -> None:
    text = changed(
        BASE,
        ("version = 3", "version = 3.5"),
        ("until = 2025-06-01 }", "until = 2025-06-10 }"),
        (USER, USER + 'min_cout = 5\nvocabulary = "creativ"\n'),
        ('kind = "sequence"', 'kind = "sequnce"'),
        (WINDOW, 'window = "week"\n'),
        ('given = "click"', 'given = "clik"'),
        ("[tables.ad]", '[features.click]\nkind = "hashed"\nbuckets = 8\n[tables.ad]'),
    )
    assert mistakes(text, tmp_path) == [
        "ads.toml:2: version: expected an integer, found 3.5.",
        "ads.toml:10: split.valid: overlaps 'train': a row would be in both. Write 'from' and 'until'.",
        "ads.toml:14: features.user_id: unknown key 'min_cout'. Did you mean 'min_count'?",
        "ads.toml:15: features.user_id.vocabulary: there is no [vocabularies.creativ]. Did you mean 'creative'?",
        'ads.toml:20: features.history.kind: found "sequnce", expected one of "categorical", "sequence", "set", '
        '"weighted_set", "numeric", "time", "cross", "hashed", "vector". Did you mean \'sequence\'?',
        "ads.toml:24: labels.click: its array 'click' is also given by features.click. Each array has its own name: "
        "rename one.",
        'ads.toml:30: labels.convert.window: "week" is no duration; write whole numbers with w, d, h, m, s, ms or us, '
        'such as "7d", "12h" or "1d12h".',
        "ads.toml:31: labels.convert.given: there is no [labels.clik]. Did you mean 'click'?",
    ]


@pytest.mark.parametrize(
    ("split", "said"),
    [
        (
            {"by": "random", "train": 0.8, "valid": 0.3},
            "split: the shares add up to 1.1; they may add up to 1.",
        ),
        ({"by": "random", "train": 1.5}, "split.train: expected at most 1, found 1.5."),
        ({"by": "random", "train": 0.5, "sed": 3}, "split: unknown key 'sed'. Did you mean 'seed'?"),
        ({"by": "random", "train": 0.5, "quarantine": 0.1}, "split: unknown key 'quarantine'."),
        ({"by": "random", "train": 0.5, "Late": 0.1}, "split: unknown key 'Late'."),
        ({"by": "random", "train": 0.5, "late": "x"}, 'split.late: expected a number, found "x".'),
        ({"by": "group", "train": 0.5}, "split: the key 'key' is missing."),
        ({"by": "group", "train": 0.5, "key": "u", "seed": -1}, "split.seed: expected at least 0, found -1."),
        (
            {"by": "column", "column": "d", "train": [1], "valid": ["1"]},
            "split.valid[0]: \"1\" is in 'train' already.",
        ),
        ({"by": "column", "column": "d", "train": [1], "test": []}, "split.test: the list is empty."),
        ({"by": "column", "column": "d", "train": [1.5]}, "split.train[0]: expected a text, found 1.5."),
        (
            {"by": "file", "train": "a*", "valid": ["b", "a*"]},
            "split.valid[1]: \"a*\" is in 'train' already.",
        ),
        ({"by": "file", "train": 3}, "split.train: expected a list, found 3."),
        ({"by": "time", "train": {"until": 1e-7}}, "split.train.until: 1e-07 s is finer than a microsecond"),
    ],
)
def test_mistakes_of_a_split(split: dict[str, object], said: str) -> None:
    declared = {
        "name": "x",
        "source": {"files": "a.csv"},
        "features": {"a": {"kind": "numeric"}},
        "time": {"column": "t"},
        "split": split,
    }
    with pytest.raises(SpecError) as caught:
        Spec.from_dict(declared)
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


def test_ten_tenths_are_a_whole() -> None:
    parts = {f"part_{letter}": 0.1 for letter in "abcdefghi"}
    spec = Spec.from_dict(
        {
            "name": "x",
            "source": {"files": "a.csv"},
            "features": {"a": {"kind": "numeric"}},
            "split": {"by": "random", "train": 0.1, **parts},
        }
    )
    assert spec.split_names == ("train", *parts)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "ads.toml").write_text(BASE)
    (tmp_path / "bytes.toml").write_bytes(b'name = "\xff"\n')
    for name, said in [
        (
            "adds.toml",
            f"{tmp_path / 'adds.toml'}: there is no such file. Did you mean 'ads.toml'?",
        ),
        (
            "bytes.toml",
            f"{tmp_path / 'bytes.toml'}:1: byte 8 is 0xff, which is no UTF-8. Save the file as UTF-8.",
        ),
        (".", f"{tmp_path}: cannot be read: Is a directory."),
    ]:
        with pytest.raises(SpecError) as caught:
            Spec.load(tmp_path / name)
        assert str(caught.value) == said
    with pytest.raises(SpecError, match=r"^the path of a spec is .*which no file can be named"):
        Spec.load(tmp_path / "a\0b")


def test_mistakes_in_python_name_the_declaration() -> None:
    with pytest.raises(
        SpecError, match=r"^Hashed: the key 'buckets' is missing.|Hashed: unknown key 'bucket'."
    ):
        Hashed(bucket=3)
    with pytest.raises(SpecError, match=r"^Numeric: transform = \"bucketize\" needs the key 'buckets'\.$"):
        Numeric(transform="bucketize")
    with pytest.raises(SpecError, match=r"^Attribution: window: expected a duration of more than 0\.$"):
        Attribution(click_time="a", convert_time="b", window="0s")
    with pytest.raises(SpecError, match=r"^Categorical takes keys only, as in Categorical\(key=value\)\.$"):
        Categorical("user_id")
    with pytest.raises(
        SpecError, match=r"^Spec: features\.a\.vocabulary: there is no \[vocabularies\.b\]\.$"
    ):
        Spec(name="x", source=Source(files="a.csv"), features={"a": Sequence(vocabulary="b", max_length=2)})


def test_an_underscore_is_of_python_only() -> None:
    declared = {
        "name": "x",
        "source": {"files": "a.csv"},
        "features": {"a": {"kind": "categorical", "from_": "s"}},
    }
    with pytest.raises(SpecError, match=r"^features\.a: unknown key 'from_'\. Did you mean 'from'\?$"):
        Spec.from_dict(declared)


@pytest.mark.parametrize("declared", [None, 3, [], "name", [("name", "x")]])
def test_a_spec_is_a_table(declared: object) -> None:
    with pytest.raises(SpecError, match="a spec is a table of keys, found"):
        Spec.from_dict(declared)


def test_a_spec_needs_a_feature() -> None:
    with pytest.raises(SpecError, match=r"no feature is declared; write at least one \[features\.NAME\]\.$"):
        Spec.from_dict({"name": "x", "source": {"files": "a.csv"}, "features": {}})
    with pytest.raises(SpecError, match=r"^the key 'features' is missing\.$"):
        Spec.from_dict({"name": "x", "source": {"files": "a.csv"}})


def test_mistakes_that_only_the_files_show_have_their_line_too(tmp_path: Path) -> None:
    spec = Spec.load(_written(tmp_path, BASE))
    [use] = spec.columns()["history_ts"]
    text = "no file has the column."
    assert spec.message(use.path, text) == f"{tmp_path / 'other.toml'}:20: features.history.time: {text}"
    [use, *_] = spec.columns()["user_id"]
    assert spec.message(use.path, text) == f"{tmp_path / 'other.toml'}:12: features.user_id.column: {text}"
    assert Spec.from_dict(spec.to_dict()).message(use.path, text) == f"features.user_id.column: {text}"
