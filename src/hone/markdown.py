"""Read Markdown and color code, the same way for the terminal and the page."""

from collections.abc import Sequence
from functools import cache

from markdown_it import MarkdownIt
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Token, _TokenType

LANGUAGES = frozenset(
    [
        *("bash", "c", "c++", "cpp", "cs", "csharp", "css", "diff", "docker", "dockerfile", "go", "haskell"),
        *("html", "ini", "java", "javascript", "js", "json", "jsx", "kotlin", "lua", "make", "makefile"),
        *("markdown", "md", "php", "py", "python", "rb", "rs", "ruby", "rust", "scala", "sh", "shell", "sql"),
        *("swift", "toml", "ts", "tsx", "typescript", "xml", "yaml", "yml", "zsh"),
    ]
)
"""The languages that a fence may name. A name from a model chooses among these and looks up nothing else."""
LONGEST = 100_000
"""Code with more characters than this stays plain."""

ColoredPiece = tuple[_TokenType, str]


def grammar() -> MarkdownIt:
    """Return a parser for CommonMark with tables, without HTML and references: it shows everything that was
    said, and no block depends on another."""
    parser = MarkdownIt("commonmark", {"html": False})
    return parser.enable(["table", "strikethrough"]).disable("reference")


def color(code: str, language: str) -> Sequence[ColoredPiece]:
    """Return the pieces of a text with their kinds. Joined, they are the same text, whatever the lexer does
    with it."""
    if language not in LANGUAGES or len(code) > LONGEST:
        return [(Token, code)]
    pieces = list(_lexer(language).get_tokens(code))
    return pieces if "".join(piece for _, piece in pieces) == code else [(Token, code)]


@cache
def _lexer(language: str) -> Lexer:
    return get_lexer_by_name(language, stripnl=False, ensurenl=False)
