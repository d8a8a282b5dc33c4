"""Read the JSON schema that an answer must fit from a file."""

from pathlib import Path

import click
import msgspec

from hone.core.errors import Refused
from hone.core.json_schema import check_schema
from hone.core.visible import visible
from hone.runtime.returning import AnswerForm, make_form


def read_form(path: Path) -> AnswerForm:
    """Return the form from a schema file. Raises UsageError for a file that cannot be read, is not JSON, or
    is no schema that can be checked."""
    name = visible(str(path))
    try:
        schema = msgspec.json.decode(path.read_bytes())
        check_schema(schema)
        return make_form(schema)
    except OSError as error:
        raise click.UsageError(f"The schema {name} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"The schema {name} is not JSON: {visible(str(error))}.") from error
    except Refused as refusal:
        raise click.UsageError(f"{name}: {refusal}") from refusal
