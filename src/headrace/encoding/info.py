"""What a model needs to know of each feature: the sizes of its inputs and of its embedding tables."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.encoding.declared import feature_places
from headrace.encoding.ids import table_size
from headrace.fit.fitted import Fitted
from headrace.fit.vocabulary import Vocabulary
from headrace.spec import Cross, Feature, Numeric, Sequence, Set, Spec, Vector, WeightedSet

_RAGGED = (Sequence, Set, WeightedSet)


@dataclass(frozen=True)
class FeatureInfo:
    """What a model needs to know of one feature."""

    name: str
    kind: str
    """As declared; a bucketized number is ``"numeric"``."""
    dtype: str
    """In a batch: ``"int64"`` for ids (or as ``id_dtype`` says), ``"float32"`` for numbers."""
    shape: tuple[int, ...]
    """In a batch, without the batch dimension."""
    size: int | None
    """Rows of its embedding table, reserved ids and buckets included; ``None``: no ids."""
    pad_id: int | None
    """0 where there are ids."""
    length: int | None
    """Padded length of a sequence or set."""
    vocabulary: Vocabulary | None
    vocabulary_name: str | None
    columns: tuple[str, ...]
    """The raw columns that it is made from."""
    missing: str
    """What becomes of a missing value, in words."""
    description: str

    @property
    def has_ids(self) -> bool:
        """Whether a model looks it up in an embedding table."""
        return self.size is not None


def feature_info(spec: Spec, name: str, fitted: Fitted) -> FeatureInfo:
    """Return what a model needs to know of a feature."""
    feature = spec.features[name]
    vocabulary_name = spec.vocabulary_of(name)[0] if hasattr(feature, "vocabulary") else None
    vocabulary = None if vocabulary_name is None else fitted.vocabularies[vocabulary_name]
    size = table_size(feature, vocabulary)
    length = feature.max_length if isinstance(feature, _RAGGED) else None
    shape = (length,) if length is not None else (feature.dim,) if isinstance(feature, Vector) else ()
    return FeatureInfo(
        name=name,
        kind=feature.kind,
        dtype="float32" if size is None else "int64",
        shape=shape,
        size=size,
        pad_id=None if size is None else 0,
        length=length,
        vocabulary=vocabulary,
        vocabulary_name=vocabulary_name,
        columns=_columns(spec, feature),
        missing=_missing(feature),
        description=feature.description,
    )


def _columns(spec: Spec, feature: Feature) -> tuple[str, ...]:
    if isinstance(feature, Cross):
        return feature.columns
    return tuple(
        place.reading.path if place.table is None else f"{place.table}.{place.reading.path}"
        for place in feature_places(spec, feature)
    )


def _missing(feature: Feature) -> str:
    if isinstance(feature, _RAGGED):
        return "an empty one"
    if isinstance(feature, Vector):
        return "zeros"
    if isinstance(feature, Numeric):
        return _missing_number(feature)
    return {"own": "the id MISSING", "unknown": "the id UNKNOWN", "pad": "the id PAD"}[
        getattr(feature, "missing", "own")
    ]


def _missing_number(feature: Numeric) -> str:
    if feature.transform == "bucketize":
        return "the id MISSING"
    return f"{0.0 if feature.missing is None else feature.missing:g}"


def embedding_sizes(infos: dict[str, FeatureInfo]) -> dict[str, int]:
    """Return the rows of each embedding table: by vocabulary, and by feature where it has none."""
    return {info.vocabulary_name or info.name: info.size for info in infos.values() if info.size is not None}
