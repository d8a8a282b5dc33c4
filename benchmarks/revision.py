"""The tree of a Git revision, written to a folder to be measured beside the working tree."""

import io
import subprocess
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def unpacked(revision: str, folder: Path) -> Path:
    """Write the revision's files to the folder, without touching the repository."""
    command = ("git", "archive", "--format=tar", revision)
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True)
    if done.returncode:
        raise SystemExit(f"Git has no revision {revision}: {done.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder
