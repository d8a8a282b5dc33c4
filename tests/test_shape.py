"""scripts/shape counts what it says it counts."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
FILES = {
    "src/hone/__init__.py": "",
    "src/hone/a.py": "import re\nfrom hone import b\n\nclass Entry: ...\n\ndef f():\n import re\n b\n",
    "src/hone/b.py": "def back():\n  from hone.a import f\n\n  def inner():\n    import os\n  return f\n",
    "src/hone/c.py": "import typing\nif typing.TYPE_CHECKING:\n  import hone.d\n\nclass Entry: ...\n",
    "src/hone/d.py": "from . import c\n\nclass D: ...\n",
    "src/hone/shapes.py": "class D: ...\n",
    "src/hone/features/__init__.py": "",
    "src/hone/features/one.py": "from hone.features.two.deep import x\n",
    "src/hone/features/two/__init__.py": "",
    "src/hone/features/two/deep.py": "from hone.features.two import y\nx = 1\n",
    "docs/words.md": "# Words\n\n| word | meaning |\n|---|---|\n| a | b |\n| c | d |\n\n- **E**: f.\n",
}


def shape(*options: str | Path) -> tuple[dict[str, str], str]:
    command = [sys.executable, ROOT / "scripts" / "shape", *options]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows = [line.strip("| ").split(" | ") for line in out.splitlines() if line.startswith("| ")]
    return {row[0]: row[-1] for row in rows}, out


def test_the_figures_of_a_small_tree_are_right(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    figures, out = shape("--tree", tmp_path, "--no-trace")
    del figures["figure"]
    assert figures == {
        "modules": "10",
        "lines": "26",
        "median module": "2",
        "largest module": "8 (hone.a)",
        "longest function": "6 (hone.b.back)",
        "imports inside functions": "3",
        "… of hone": "1",
        "import cycles": "1 (2 modules)",
        "… with imports for types": "1 (2 modules)",
        "public class names used twice": "1",
        "words in docs/words.md": "3",
        "self-contained features": "1 of 2",
    }
    for row in ("- hone.a, hone.b", "- hone.c, hone.d", "- Entry: hone.a, hone.c", "- one: two"):
        assert row in out.splitlines()


def test_this_tree_is_measured_with_the_commands_that_run_in_it() -> None:
    figures, _ = shape("--brief")
    for command in ("`hone run hi`", "`hone undo 3`", "`hone sessions search hi`"):
        functions, _, rest = figures[command].partition(" functions in ")
        files, _, loaded = rest.partition(" files, ")
        assert 10 < int(files) <= int(loaded.removesuffix(" files loaded"))
        assert int(functions) > int(files)
