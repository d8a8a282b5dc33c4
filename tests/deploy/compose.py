"""Read compose.yaml as Compose does, and start its services in a root folder in place of containers."""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.dockerfile import Root

CONTEXT = Path(__file__).parents[2]
VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


def read(path: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    """The file with its variables replaced and its anchors resolved."""
    text = VARIABLE.sub(lambda found: environ.get(found[1]) or found[2] or "", path.read_text("utf-8"))
    return dict(yaml.safe_load(text))


def find_variables(path: Path) -> set[str]:
    """Those that the operator can set."""
    return {name for name, _ in VARIABLE.findall(path.read_text("utf-8"))}


def lay_out(root: Root, service: Mapping[str, Any], volumes: Path, secrets: Path) -> list[str]:
    """What bubblewrap puts into the root for a service: its volumes, its secrets, its folders in memory. A
    new volume begins as a copy of the folder that it covers. A file is bound from the checkout."""
    words: list[str] = []
    for each in service["volumes"]:
        source, place = each.split(":")[:2]
        if source.startswith("./"):
            words += ["--ro-bind", str(CONTEXT / source), place]
            continue
        if not (volumes / source).exists():
            subprocess.run(["cp", "--archive", root.inside(place), volumes / source], check=True)
        words += ["--bind", str(volumes / source), place]
    for each in service.get("tmpfs", ()):
        words += ["--tmpfs", each, "--chmod", "1777", each]
    words += ["--chmod", "0755", "/run", "--dir", "/run/secrets", "--chmod", "0755", "/run/secrets"]
    for each in service["secrets"]:
        words += ["--ro-bind", str(secrets / each), f"/run/secrets/{each}"]
    return words


def start(root: Root, service: Mapping[str, Any], binds: list[str], more: Mapping[str, str]) -> list[str]:
    """The command of a service in its container: the image's entry point, then the service's own words."""
    values = {**service.get("environment", {}), **more}
    words = ["hone-entrypoint", *(str(word) for word in service["command"])]
    return root.command(words, more=values, binds=binds, sealed=bool(service["read_only"]))
