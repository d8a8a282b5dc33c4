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
"""What a fence may ask for. A name from a model chooses among these; it looks nothing up."""
LONGEST = 100_000
"""Code of more letters stays plain."""

ColoredPiece = tuple[_TokenType, str]


def grammar() -> MarkdownIt:
    """CommonMark with tables, without HTML and without references: nothing that was said goes unseen, and no
    block depends on another."""
    parser = MarkdownIt("commonmark", {"html": False})
    return parser.enable(["table", "strikethrough"]).disable("reference")


def color(code: str, language: str) -> Sequence[ColoredPiece]:
    """Return the pieces of a text with their kinds. Joined, they are the same text, whatever the lexer makes
    of it."""
    if language not in LANGUAGES or len(code) > LONGEST:
        return [(Token, code)]
    pieces = list(_lexer(language).get_tokens(code))
    return pieces if "".join(piece for _, piece in pieces) == code else [(Token, code)]


@cache
def _lexer(language: str) -> Lexer:
    return get_lexer_by_name(language, stripnl=False, ensurenl=False)
