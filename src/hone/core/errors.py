"""The tree of errors. Each message is a sentence that can be shown to the user as it stands.

HoneError
├── SettingsError            hone.toml or an option cannot be used
├── Refused                  what was asked cannot be done, and nothing was
├── ModelError               the provider did not give an answer
│   ├── Unreachable          refused, reset, cut off, nonsense on the wire    (worth another try)
│   ├── Overloaded           408, 429, 5xx; may say when to come back         (worth another try)
│   ├── Silent               no byte before the deadline
│   ├── Unusable             an empty reply                                   (worth another try)
│   ├── Unauthorised         the key is missing or refused
│   ├── Overflow             the conversation is longer than the model's window
│   │   └── Crowded          it soon will be, by our own estimate
│   └── Rejected             any other no: bad request, unknown model, filtered
├── BackendError             a memory backend did not do what was asked       (worth another try, later)
│   └── Unfit                this memo it will never take
└── StoreError               the home folder cannot be read or written
    ├── Missing              no such session, change or content
    ├── Conflict             somebody else wrote first
    └── Corrupt              what was read is not what was written
"""


class HoneError(Exception):
    """Anything Hone raises on purpose."""


class SettingsError(HoneError):
    """hone.toml or an option cannot be used."""


class Refused(HoneError):
    """What was asked cannot be done; nothing was changed. The message says what could be."""


class ModelError(HoneError):
    """The provider did not give an answer."""

    transient = False


class Unreachable(ModelError):
    """Connection refused, reset or cut off, or bytes that are not the protocol."""

    transient = True


class Overloaded(ModelError):
    """The provider asks for patience."""

    transient = True

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Silent(ModelError):
    """No byte arrived before the deadline."""


class Unusable(ModelError):
    """A reply with nothing in it."""

    transient = True


class Unauthorised(ModelError):
    """The key is missing or refused."""


class Overflow(ModelError):
    """The conversation is longer than the model's window."""


class Crowded(Overflow):
    """By our own estimate the conversation soon will be too long."""


class Rejected(ModelError):
    """Any other refusal by the provider."""


class BackendError(HoneError):
    """A memory backend did not do what was asked."""


class Unfit(BackendError):
    """What was given to a backend is nothing it will ever take."""


class StoreError(HoneError):
    """The home folder cannot be read or written."""


class Missing(StoreError):
    """No such session, change or content."""


class Conflict(StoreError):
    """Somebody else wrote first."""


class Corrupt(StoreError):
    """What was read is not what was written."""
