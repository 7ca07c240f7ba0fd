"""The base of every declaration: frozen, strict, and nothing unknown is let in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    model_validator,
)
from pydantic.functional_validators import ModelWrapValidatorHandler

from headrace.errors import SpecError, did_you_mean
from headrace.spec.problems import Problem, ProblemsError, from_validation, shown, unknown_key, wrong

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)

LARGEST_INTEGER = 2**63 - 1
"""TOML integers are int64."""


def plain_key(name: str) -> str:
    """Return how a field is written in TOML: the Python name ``from_`` is the key ``from``."""
    return name.rstrip("_")


class DeclaredType(ModelMetaclass):
    """Makes ``Hashed(bucket=3)`` raise a ``SpecError`` instead of a pydantic error."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Validate the keys of a declaration that is written in Python."""
        if args:
            raise SpecError(f"{self.__name__} takes keys only, as in {self.__name__}(key=value).")
        try:
            return super().__call__(**{plain_key(key): value for key, value in kwargs.items()})
        except ValidationError as error:
            problems = list(from_validation(error))
        raise SpecError("\n".join(problem.line(self.__name__) for problem in problems))


class Declared(BaseModel, metaclass=DeclaredType):
    """Something that a user declares. It does no work and reads no file.

    A TOML key that is a word of Python carries an underscore there: ``from_``, ``with_``.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        alias_generator=plain_key,
        defer_build=True,
    )

    @classmethod
    def allowed(cls) -> tuple[str, ...]:
        """Return the TOML keys that this declaration takes."""
        return tuple(plain_key(name) for name in cls.model_fields)

    @classmethod
    def takes(cls, key: object) -> bool:
        """Return whether this declaration has the key."""
        return key in cls.allowed()

    @classmethod
    def completed(cls, data: dict[Any, Any]) -> dict[Any, Any]:
        """Return the user's keys with those that follow from others filled in."""
        return data

    def mistakes(self) -> Iterable[Problem]:
        """Return what is wrong between keys that are each right by themselves."""
        return ()

    @model_validator(mode="wrap")
    @classmethod
    def _collect(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Validate, and report unknown keys, wrong values and impossible combinations at once."""
        if not isinstance(data, Mapping):
            return handler(data)
        made, problems = cls._attempt(dict(data), handler)
        if problems or made is None:
            raise ProblemsError(problems)
        return made

    @classmethod
    def _attempt(
        cls, data: dict[Any, Any], handler: ModelWrapValidatorHandler[Self]
    ) -> tuple[Self | None, list[Problem]]:
        problems = [unknown_key(key, cls.allowed()) for key in data if not cls.takes(key)]
        try:
            made = handler({key: value for key, value in cls.completed(data).items() if cls.takes(key)})
        except ValidationError as error:
            return None, [*problems, *from_validation(error)]
        return made, [*problems, *made.mistakes()]

    def written(self, key: str) -> bool:
        """Return whether the user wrote this key (by its Python name), be it with the default value."""
        return key in self.model_fields_set


def one_of(tag: str, *declarations: type[Declared]) -> PlainValidator:
    """Return the validator of a table whose key ``tag`` chooses among declarations.

    Args:
        tag: ``"kind"`` or ``"by"``.
        declarations: The choices; the default of each one's field ``tag`` is its name.
    """
    by_name = {declaration.model_fields[tag].default: declaration for declaration in declarations}

    def choose(value: object) -> Declared:
        if isinstance(value, declarations):
            return value
        if not isinstance(value, Mapping):
            raise wrong(f"expected a table, found {shown(value)}.")
        return _chosen(value, tag, by_name).__pydantic_validator__.validate_python(dict(value))  # type: ignore[no-any-return]

    return PlainValidator(choose)


def _chosen(value: Mapping[Any, Any], tag: str, by_name: Mapping[str, type[Declared]]) -> type[Declared]:
    allowed = ", ".join(f'"{name}"' for name in by_name)
    if tag not in value:
        raise wrong(f"the key '{tag}' is missing: one of {allowed}.")
    name = value[tag]
    if not isinstance(name, str) or name not in by_name:
        hint = did_you_mean(name, by_name) if isinstance(name, str) else ""
        raise ProblemsError([Problem((tag,), f"found {shown(name)}, expected one of {allowed}.{hint}")])
    return by_name[name]


def _tuple_of_list(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _id_texts(value: object) -> object:
    if not isinstance(value, (list, tuple)):
        return value
    return tuple(str(v) if isinstance(v, int) and not isinstance(v, bool) else v for v in value)


def _tuple_of_one_or_many(value: object) -> object:
    return (value,) if isinstance(value, str) else _tuple_of_list(value)


Text: TypeAlias = Annotated[str, Field(min_length=1)]
"""A text that is not empty."""

Texts: TypeAlias = Annotated[tuple[Text, ...], BeforeValidator(_tuple_of_list)]
"""A list of texts, kept as a tuple so that it stays as declared."""

AnyTexts: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_tuple_of_list)]
"""A list of texts that may be empty ones."""

IdTexts: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_id_texts)]
"""A list of raw values: texts, or integers, which are their decimal text."""

OneOrMoreTexts: TypeAlias = Annotated[
    tuple[Text, ...], BeforeValidator(_tuple_of_one_or_many), Field(min_length=1)
]
"""One text or a list of texts."""

Count: TypeAlias = Annotated[int, Field(ge=1, le=LARGEST_INTEGER)]
"""An integer of at least 1."""
