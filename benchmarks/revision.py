"""The tree of a Git revision, written to a folder to be measured beside the working tree."""

import io
import subprocess
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parent.parent


def unpacked(revision: str, folder: Path) -> Path:
    """Write the revision's files to the folder, without touching the repository."""
    command = ("git", "archive", "--format=zip", revision)
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True)
    if done.returncode:
        raise SystemExit(f"Git has no revision {revision}: {done.stderr.decode().strip()}")
    with ZipFile(io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder)
    return folder
