"""How values are defined: `dataclass(frozen=True, slots=True)` as in the standard library, but cheap.

The standard decorator writes and compiles six methods a class. That takes half a millisecond, and some two
hundred classes are there before the first request. Here `__init__` is compiled when the first instance is
made, and the other methods need no compiler. Other options go to the standard decorator as they are.
"""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, **options):
        if options != {"frozen": True, "slots": True}:
            return dataclasses.dataclass(cls, **options)
        return _value if cls is None else _value(cls)


__all__ = ["dataclass"]

Fields = Sequence[Field[Any]]
Method = Callable[..., Any]


def _value(cls: Any) -> Any:
    if cls.__bases__ != (object,):
        return dataclasses.dataclass(frozen=True, slots=True)(cls)
    doc = cls.__doc__
    cls.__doc__ = doc or cls.__name__  # or else the standard decorator makes one from the signature, slowly
    fields = dataclasses.fields(dataclasses.dataclass(init=False, repr=False, eq=False)(cls))
    names = tuple(field.name for field in fields)

    def first(self: object, *args: object, **named: object) -> None:
        made.__init__ = _init(made, fields)
        made.__init__(self, *args, **named)

    replaced = {"__dict__", "__weakref__", *names}
    own = {name: value for name, value in vars(cls).items() if name not in replaced}
    own |= {"__doc__": doc, "__qualname__": cls.__qualname__, "__slots__": names}
    made: Any = type(cls.__name__, (), {"__init__": first, **_SHARED, **_compared(fields), **own})
    return made


def _compared(fields: Fields) -> dict[str, Method]:
    key = _key([field.name for field in fields if field.compare])
    code = _key([field.name for field in fields if (field.compare if field.hash is None else field.hash)])

    def equal(self: object, other: object) -> bool:
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    return {"__eq__": equal, "__hash__": lambda self: hash(code(self))}


def _key(names: Sequence[str]) -> Callable[[object], object]:
    return attrgetter(*names) if names else type


def _shown(self: Any) -> str:
    shown = (
        f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr
    )
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _assign(_: object, name: str, __: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete(_: object, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    """For copy and pickle."""
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _restore(self: Any, state: Sequence[object]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


_SHARED: dict[str, Method] = {
    "__repr__": _shown,
    "__setattr__": _assign,
    "__delattr__": _delete,
    "__getstate__": _state,
    "__setstate__": _restore,
}


def _init(made: Any, fields: Fields) -> Method:
    """Sets the slots through their descriptors, which is the fastest way past `__setattr__`."""
    space: dict[str, Any] = {"_unset": MISSING}
    head, body = ["self"], [""]
    for field in sorted(fields, key=lambda field: bool(field.kw_only)):
        name, default, value = field.name, "", field.name
        if field.default is not MISSING:
            default = f"_default_{name}"
        elif field.default_factory is not MISSING:
            default, value = "_unset", f"_make_{name}() if {name} is _unset else {name}"
        space |= {f"_set_{name}": getattr(made, name).__set__, f"_make_{name}": field.default_factory}
        space[f"_default_{name}"] = field.default
        if field.kw_only and "*" not in head:
            head.append("*")
        if field.init:
            head.append(f"{name}={default}" if default else name)
        elif default:
            body.append(f"{name} = {default}")
        if field.init or default:
            body.append(f"_set_{name}(self, {value})")
    body.append("self.__post_init__()" if hasattr(made, "__post_init__") else "pass")
    exec(f"def __init__({', '.join(head)}):" + "\n ".join(body), space)
    init: Method = space["__init__"]
    init.__qualname__ = f"{made.__qualname__}.__init__"
    return init
