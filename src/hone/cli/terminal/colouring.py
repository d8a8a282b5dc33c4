"""Code in colours of the terminal's own palette, which its owner can read on light and on dark."""

from functools import cache

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Generic, Keyword, Name, Number, Operator, String, Token, _TokenType
from rich.style import Style
from rich.text import Text

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

STYLES: dict[_TokenType, Style] = {
    Token: Style(),
    Comment: Style(dim=True, italic=True),
    Keyword: Style(color="magenta"),
    Name.Function: Style(color="blue"),
    Name.Class: Style(color="blue"),
    Name.Tag: Style(color="blue"),
    Name.Decorator: Style(color="blue"),
    String: Style(color="green"),
    Number: Style(color="cyan"),
    Operator.Word: Style(color="magenta"),
    Generic.Inserted: Style(color="green"),
    Generic.Deleted: Style(color="red"),
    Generic.Heading: Style(bold=True),
    Generic.Subheading: Style(color="cyan"),
}


def coloured(code: str, language: str) -> list[Text]:
    """The lines of the same text, whatever the lexer makes of it."""
    plain = code.split("\n")
    if language not in LANGUAGES or len(code) > LONGEST:
        return [Text(line) for line in plain]
    lines = [Text()]
    for kind, piece in _lexer(language).get_tokens(code):
        first, *more = piece.split("\n")
        lines[-1].append(first, _style(kind))
        lines += [Text.assemble((line, _style(kind))) for line in more]
    return lines if [line.plain for line in lines] == plain else [Text(line) for line in plain]


@cache
def _lexer(language: str) -> Lexer:
    return get_lexer_by_name(language, stripnl=False, ensurenl=False)


@cache
def _style(kind: _TokenType) -> Style:
    while kind not in STYLES:
        kind = kind.parent or Token
    return STYLES[kind]
