"""Declarations of the parameters of estimators.

Each parameter is declared once, as a field of the class, with its default, its constraint and its
documentation. The decorator ``declared`` generates ``__init__``, the constraints that scikit-learn
checks, and the section "Parameters" of the docstring from the fields.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from textwrap import indent
from typing import Any, TypeVar, dataclass_transform

from sklearn.utils._param_validation import Interval, StrOptions

from ..engines import is_engine

Estimator = TypeVar("Estimator", bound=type)

#: In the docstring of a class, this text is replaced by the documentation of the parameters.
PLACE = "{parameters}"


def parameter(
    default: Any,
    kind: str,
    constraint: list[Any],
    documentation: str,
    *,
    of_a_fit: bool = False,
    of_the_machine: bool = False,
) -> Any:
    """Declare a parameter of an estimator.

    Parameters
    ----------
    default : object
    kind : str
        The type, in the notation of numpydoc, without the default.
    constraint : list
        As in ``_parameter_constraints`` of scikit-learn.
    documentation : str
    of_a_fit : bool
        Whether the fits depend on the parameter. A search over such a parameter needs separate fits
        for each value.
    of_the_machine : bool
        Whether the parameter describes the machine and not the model. Model files do not contain
        such parameters.
    """
    return field(
        default=default,
        metadata={
            "kind": kind,
            "constraint": constraint,
            "documentation": documentation,
            "of_a_fit": of_a_fit,
            "of_the_machine": of_the_machine,
        },
    )


def parameter_of(cls: Any, name: str, documentation: str | None = None) -> Any:
    """Declare a parameter that another estimator has declared already.

    Parameters
    ----------
    cls : type
        The estimator that declares the parameter.
    name : str
    documentation : str, optional
        Replaces the documentation of the other estimator.
    """
    one = next(one for one in fields(cls) if one.name == name)
    metadata = dict(one.metadata)
    if documentation is not None:
        metadata["documentation"] = documentation
    return field(default=one.default, metadata=metadata)


@dataclass_transform(field_specifiers=(parameter, parameter_of))
def declared(cls: Estimator) -> Estimator:
    """Generate ``__init__``, the constraints and the documentation from the fields of a class."""
    made: Any = dataclass(eq=False, repr=False)(cls)
    made._parameter_constraints = {one.name: one.metadata["constraint"] for one in fields(made)}
    listed = "\n".join(_documented(one) for one in fields(made))
    made.__doc__ = inspect.cleandoc(cls.__doc__ or "").replace(PLACE, listed)
    return cls


def _documented(one: Any) -> str:
    default = f'"{one.default}"' if isinstance(one.default, str) else repr(one.default)
    head = f"{one.name} : {one.metadata['kind']}, default={default}"
    return f"{head}\n{indent(inspect.cleandoc(one.metadata['documentation']), '    ')}"


def names_of(cls: Any, **flags: bool) -> tuple[str, ...]:
    """The names of the parameters of a class that have given flags, such as ``of_a_fit=True``."""
    return tuple(
        one.name
        for one in fields(cls)
        if all(one.metadata[flag] == value for flag, value in flags.items())
    )


def positive_integer() -> Interval:
    return Interval(Integral, 1, None, closed="left")


def share() -> Interval:
    """A number larger than 0 and at most 1."""
    return Interval(Real, 0, 1, closed="right")


class EngineName(StrOptions):  # type: ignore[misc]
    """The values of ``engine``: a name, or "torch:" followed by a device."""

    def __init__(self) -> None:
        super().__init__({"auto", "native", "numpy", "torch"})

    def is_satisfied_by(self, val: Any) -> bool:
        return isinstance(val, str) and is_engine(val)

    def __str__(self) -> str:
        return (
            "'auto', 'native', 'numpy' or 'torch', or 'torch' with a device, such as 'torch:cpu' "
            "or 'torch:cuda:1'"
        )
