"""Names that want to lead elsewhere, and a home with a canary tree around it."""

import os
import stat
from pathlib import Path
from random import Random

CANARY = b"canary: nobody reads or changes this"

STARTS = [
    "",
    "",
    "",
    "/",
    "//",
    "./",
    "../",
    "../../",
    "~/",
    "skills/",
    "skills/real/references/",
    "references/",
]
STARTS += [
    "skills/link/",
    "link/",
    "C:\\",
    "\\\\?\\C:\\",
    "file:///",
    "scripts/",
    "skills/.archive/",
    "projects/",
]
SEPARATORS = ["/"] * 8 + ["//", "/./", "/../", "\\", "..\\", "%2f", "\u2215", "\u2044", "\uff0f", "\0/", ""]
PLAIN = [
    "a",
    "b.md",
    "real",
    "skills",
    "references",
    "templates",
    "secret.txt",
    "MEMORY.md",
    "projects",
    "folder",
]
TRICKY = [
    *[
        "",
        ".",
        "..",
        "...",
        ".. ",
        " ..",
        "..\0",
        "..;",
        "%2e%2e",
        "%252e%252e",
        "%c0%ae%c0%ae",
        "..%00",
        "..\t",
    ],
    *[
        "\u2024\u2024",
        "\uff0e\uff0e",
        "\u2025",
        "\u2026",
        "..\u200b",
        "\u200b..",
        ".\u034f.",
        "\u202e..",
        "\ufeff",
    ],
    *[
        "link",
        "link.md",
        "loop",
        "pipe",
        ".archive",
        ".lock",
        ".hone-0.tmp",
        "hone.db",
        "~",
        "~root",
        "$HOME",
        "-rf",
    ],
    *[
        "SKILL.md",
        "skill.md",
        "Skill.MD",
        "SKILL.md.",
        "SKILL.md ",
        "SKILL.md\0",
        "SK\u0131LL.md",
        "SKILL.md::$DATA",
    ],
    *[
        "\uff33KILL.md",
        "S\u212aILL.md",
        "\u017fKILL.md",
        "SKILL\u200d.md",
        "SKILL\uff0emd",
        "SKILL~1.MD",
        "ЅKILL.md",
    ],
    *[
        "CON",
        "nul.txt",
        "COM1",
        "lpt9 .md",
        "aux.",
        "PRN .txt",
        "a:b",
        "a|b",
        "a*b",
        "a?b",
        "<a>",
        '"a"',
        "`id`",
    ],
    *[
        "x ",
        " x",
        "x.",
        ".x",
        "x\n",
        "\rx",
        "x\x1b[2J",
        "\x7f",
        "\x85",
        "\u2028",
        "\U000e0041",
        "\u3164",
        "\u115f",
    ],
    *[
        "\ud800",
        "\udcff",
        "\udcc0\udcae",
        "e\u0301",
        "\u00e9",
        "日本",
        "日" * 90,
        "x" * 100,
        "x" * 256,
        "x" * 5_000,
    ],
    *[
        "\U0001f468\u200d\U0001f469",
        "برنامه",
        "\u0300",
        "\x00",
        "a\x00b",
        "$(id)",
        "${PATH}",
        "{a,b}",
        "!!",
        "#",
        "@origin",
    ],
]


def nasty(random: Random, number: int, outside: Path) -> str:
    """Half of them are mostly plain, so that many get as far as the disk."""
    starts = [*STARTS, f"{outside}/", f"/..{outside}/"]
    pool = PLAIN * 8 + TRICKY if number % 2 else PLAIN + TRICKY
    parts = [random.choice(pool) for _ in range(random.choice((1, 1, 2, 2, 3, 4, 7, 40)))]
    name = random.choice(starts) + parts[0]
    for part in parts[1:]:
        name += ("/" if random.random() < 0.7 else random.choice(SEPARATORS)) + part
    if random.random() < 0.1:
        at = random.randrange(len(name) + 1)
        name = name[:at] + chr(random.randrange(0x110000)) + name[at:]
    return name


def surround(area: Path) -> tuple[Path, Path]:
    """A home, and the folder beside it where its links lead."""
    home, outside = area / "home", area / "outside"
    for folder in (outside, outside / "real", outside / "references", outside / "real" / "references"):
        folder.mkdir(parents=True)
        for name in ("secret.txt", "MEMORY.md", "SKILL.md", "a", "b.md"):
            (folder / name).write_bytes(CANARY)
    (area / "secret.txt").write_bytes(CANARY)
    home.mkdir(mode=0o700)
    plant(home, outside)
    return home, outside


def plant(home: Path, outside: Path) -> None:
    """What an attacker could have left in the home; where it was moved away, again."""
    real = home / "skills" / "real"
    if not (real / "SKILL.md").is_file():
        (real / "references").mkdir(parents=True, exist_ok=True)
        (real / "SKILL.md").write_bytes(b"real")
    for link, target in (
        (home / "link", outside),
        (home / "skills" / "link", outside / "real"),
        (real / "link", outside),
        (real / "references" / "link", outside / "references"),
        (real / "references" / "link.md", outside / "secret.txt"),
        (home / "skills" / "loop", home / "skills" / "loop"),
    ):
        if not link.is_symlink():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(target)
    if not (home / "skills" / "pipe").exists():
        os.mkfifo(home / "skills" / "pipe")


def inventory(area: Path, without: Path | None = None) -> dict[str, tuple[object, ...]]:
    """Everything below a folder, with content and times."""
    found: dict[str, tuple[object, ...]] = {}
    for folder, folders, files in os.walk(area):
        folders[:] = [name for name in folders if Path(folder, name) != without]
        for path in (Path(folder), *(Path(folder, name) for name in files)):
            status = path.lstat()
            data = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
            found[str(path)] = (status.st_mode, status.st_ino, status.st_mtime_ns, status.st_size, data)
    found.pop(str(area))
    return found
