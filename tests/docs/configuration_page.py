"""docs/configuration.md, made from the types in hone.settings and the sentences beside their fields."""

import ast
import inspect
from collections.abc import Iterator
from itertools import chain

import msgspec
from msgspec import Struct

from hone import settings
from hone.cli.config import VARIABLES
from hone.core.toml_faults import Hint, describe_type, find_entries, find_fields
from hone.settings import sections

HEAD = """\
# Settings

Hone reads its settings from `hone.toml` in its home, which is `~/.hone` unless `HONE_HOME` or `--home` names
another folder. This page lists every key with its default. It is made from the code, and a test fails when
it is out of date.

```sh
hone config                          # every setting, where it comes from, which model is used and why
hone config get learning.turns       # one value
hone config set learning.turns 5     # change it; comments and order stay
hone config set sandbox.read ~/data  # several values make a list
hone config unset sandbox.read       # back to the default
hone config edit                     # open the file in an editor, and check it afterwards
hone config check                    # name every fault with its line and what is allowed
hone config path                     # print where the file is
hone config init                     # write a file with all defaults as comments
```

A fault names the key, the line and what is allowed, and Hone does not start before it is fixed:

```
~/.hone/hone.toml, line 4: learning.agent must be one of "auto", "ask", "off".
```

"""
TABLE = "| key | value | default | |\n|---|---|---|---|"
NAME = "NAME"
OWNERS = {"projects": "FOLDER", "providers": "NAME", "prices": "PROVIDER/MODEL", "models": "PROVIDER/MODEL"}
"""How a table is named that the owner names."""


def page() -> str:
    sentences = find_sentences()
    tables = list(_tables(sentences))
    variables = [f"| `{name}` | `{_variable_key(name)}` |" for _, name in VARIABLES]
    general = _rows(settings.Settings, sentences)
    parts = [HEAD + "## General", "\n".join((TABLE, *general)), *tables]
    wins = "## Environment variables\n\nThese win over the file.\n\n| variable | key |\n|---|---|\n"
    return "\n\n".join(parts) + "\n\n" + wins + "\n".join(variables) + "\n"


def _variable_key(name: str) -> str:
    return name.removeprefix("HONE_").lower().replace("_", ".")


def find_sentences() -> dict[tuple[str, str], str]:
    """Return the docstring of each field by class and name, and that of a class under no name."""
    found: dict[tuple[str, str], str] = {}
    sources = [ast.parse(inspect.getsource(each)).body for each in (settings, sections)]
    for kind in chain.from_iterable(sources):
        if isinstance(kind, ast.ClassDef):
            found[kind.name, ""] = _flat(ast.get_docstring(kind) or "")
            for field, text in zip(kind.body, kind.body[1:], strict=False):
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    found[kind.name, field.target.id] = _read(text)
    return found


def _read(node: ast.stmt) -> str:
    match node:
        case ast.Expr(ast.Constant(str(text))):
            return _flat(text)
    return ""


def _flat(text: str) -> str:
    return " ".join(text.split())


def _tables(sentences: dict[tuple[str, str], str]) -> Iterator[str]:
    for name, hint in (find_fields(settings.Settings) or {}).items():
        each = find_entries(hint)
        kind = each if each is not None and find_fields(each) else hint
        if not find_fields(kind):
            continue
        path = (name, OWNERS[name]) if each is not None else (name,)
        yield from _table(kind, path, sentences)


def _table(kind: type[Struct], path: tuple[str, ...], sentences: dict[tuple[str, str], str]) -> Iterator[str]:
    rows = list(_rows(kind, sentences))
    if rows:
        title = ".".join(each if each.islower() else f'"{each}"' for each in path)
        yield "\n\n".join((f"## `[{title}]`", sentences[kind.__name__, ""], "\n".join((TABLE, *rows))))
    for name, hint in (find_fields(kind) or {}).items():
        each = find_entries(hint)
        if find_fields(hint):
            yield from _table(hint, (*path, name), sentences)
        elif each is not None and find_fields(each):
            yield from _table(each, (*path, name, NAME), sentences)


def _rows(kind: type[Struct], sentences: dict[tuple[str, str], str]) -> Iterator[str]:
    for field in msgspec.structs.fields(kind):
        hint: Hint = (find_fields(kind) or {})[field.name]
        entries = find_entries(hint)
        if find_fields(hint) or (entries is not None and find_fields(entries)):
            continue
        default = "required" if field.required else f"`{_default(field)}`"
        about = next(filter(None, (sentences.get((each.__name__, field.name)) for each in kind.__mro__)), "")
        yield f"| `{field.name}` | {describe_type(hint).replace('|', '/')} | {default} | {about} |"


def _default(field: msgspec.structs.FieldInfo) -> str:
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    return msgspec.json.encode(value).decode() if value is not None else "left out"
