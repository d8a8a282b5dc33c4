"""All errors that Hone raises on purpose. Each message is a sentence that can be shown to the user.

HoneError
├── SettingsError            hone.toml or an option cannot be used
├── Refused                  the request cannot be carried out; nothing was changed
│   └── LimitReached         a user has used what they may use
├── AnswerError              there is no answer of the type that was asked for
├── ModelError               the provider did not answer                             (redacted)
│   ├── Unreachable          connection refused, reset or cut off, or invalid bytes  (retried)
│   ├── Overloaded           408, 429 or 5xx, perhaps with a Retry-After             (retried)
│   ├── Silent               no byte, or no content, arrived before the deadline
│   ├── Overlong             the reply took too long or grew too large
│   ├── Unusable             the reply is empty                                      (retried)
│   ├── Unauthorised         the key is missing or was refused
│   ├── Overflow             the conversation exceeds the model's context window
│   │   └── Crowded          by our own estimate, it soon will
│   └── Rejected             any other refusal: bad request, unknown model, filtered
├── BackendError             a memory backend failed                      (redacted, retried later)
│   └── Unfit                the backend will never accept this item
└── StoreError               the home folder cannot be read or written
    ├── Ending               the server is about to end
    ├── Missing              there is no such session, change or content
    ├── Conflict             another writer was first
    │   └── Occupied         another process answers in this conversation
    └── Corrupt              the data read is not the data that was written

The errors of a service quote what it said, and a service may repeat the key it was sent. They are redacted
when they are made, so that none has to be before it is stored, shown or sent.
"""

from hone.core.loading import import_object


class HoneError(Exception):
    """Anything Hone raises on purpose."""


class SettingsError(HoneError):
    """A setting in hone.toml or an option cannot be used."""


class Refused(HoneError):
    """The request cannot be carried out; nothing was changed. The message says what is possible instead."""


class AlreadyKnown(Refused):
    """The fact to write down is already known, so there is nothing to do."""


class LimitReached(Refused):
    """A user has reached a limit. Retry after `wait` seconds."""

    def __init__(self, message: str, wait: float) -> None:
        super().__init__(message)
        self.wait = wait


class AnswerError(HoneError):
    """The model gave no answer of the required form. The conversation is stored."""


class ServiceError(HoneError):
    """A third-party service failed. Recognized secrets are removed from its message."""

    def __init__(self, message: str = "") -> None:
        redact = import_object("hone.core.secrets:redact")  # the help and the version import these, too
        super().__init__(redact(message))


class ModelError(ServiceError):
    """The provider did not give an answer."""

    transient = False


class Unreachable(ModelError):
    """The connection was refused, reset or cut off, or the bytes are not the protocol."""

    transient = True


class Overloaded(ModelError):
    """The provider asks Hone to slow down."""

    transient = True

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Silent(ModelError):
    """No byte, or no content, arrived before the deadline."""


class Overlong(ModelError):
    """The reply took longer, or grew larger, than the settings allow."""


class Unusable(ModelError):
    """The reply is empty."""

    transient = True


class Unauthorised(ModelError):
    """The key is missing or refused."""


class Overflow(ModelError):
    """The conversation is longer than the model's context window."""


class Crowded(Overflow):
    """By our own estimate the conversation will soon be too long."""


class Rejected(ModelError):
    """Any other refusal by the provider."""


class BackendError(ServiceError):
    """A memory backend failed."""


class Unfit(BackendError):
    """The backend will never accept this item."""


class StoreError(HoneError):
    """The home folder cannot be read or written."""


class Busy(StoreError):
    """Another program is writing the file, or has just replaced it. Nothing was changed."""


class Ending(StoreError):
    """The server is about to end and begins nothing more. Retry after `wait` seconds."""

    wait = 5.0

    def __init__(self) -> None:
        super().__init__("The server is about to end. Ask again when it is back.")


class Missing(StoreError):
    """No such session, change or content."""


class Conflict(StoreError):
    """Another writer was first."""


class Occupied(Conflict):
    """Another process, or a turn that has not ended, holds this conversation. Nothing was changed."""


class Corrupt(StoreError):
    """What was read is not what was written."""
