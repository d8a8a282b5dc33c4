"""The Dockerfile, compose.yaml and the scripts beside them name only what is there."""

import fnmatch
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hone.models.providers import KNOWN
from hone.settings import read
from tests.deploy import compose, dockerfile
from tests.docs.test_readme import objection

ROOT = Path(__file__).parents[2]
STAGES = dockerfile.read(ROOT / "Dockerfile")
COMPOSE = ROOT / "compose.yaml"
SERVICES: dict[str, dict[str, Any]] = compose.read(COMPOSE, {})["services"]
OURS = [name for name, service in SERVICES.items() if service["image"] == "hone"]
SYSTEM = {"PATH", "HOME", "LANG", "PYTHONDONTWRITEBYTECODE"}
POSTGRES = {"POSTGRES_USER", "POSTGRES_PASSWORD_FILE", "POSTGRES_INITDB_ARGS"}
"""As the image's documentation has them."""
OUTSIDE = {"SERVER_NAME"}
"""What the operator may set for compose.yaml, which passes it on as an argument."""


def known_variables() -> set[str]:
    """Those of docs/configuration.md, those that the code names, and the keys of providers."""
    listed = re.findall(
        r"^\| `(HONE_\w+)` \|", (ROOT / "docs/configuration.md").read_text("utf-8"), re.MULTILINE
    )
    code = "".join(path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py"))
    return {*listed, *re.findall(r"\"(HONE_[A-Z_]+)\"", code), *(each.key for each in KNOWN if each.key)}


def test_every_variable_is_a_setting_that_hone_knows() -> None:
    known = known_variables()
    image = {name for stage in STAGES for name in stage.variables}
    services = {name for each in OURS for name in SERVICES[each].get("environment", {})}
    secrets = {name for each in OURS for name in SERVICES[each]["secrets"] if name[0].isupper()}
    assert (image - SYSTEM) | services | secrets | (compose.find_variables(COMPOSE) - OUTSIDE) <= known
    assert set(SERVICES["postgres"]["environment"]) <= POSTGRES
    assert "HONE_DATABASE" in secrets
    assert "HONE_NONSENSE" not in known


def test_the_image_copies_only_what_is_there_and_not_ignored() -> None:
    rows = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    let_in = [row[1:] for row in rows if row.startswith("!")]
    for stage in STAGES:
        for line in stage.lines:
            if line.name == "COPY" and "from" not in line.options:
                for source in line.words[:-1]:
                    assert (ROOT / source).exists(), source
                    assert any(fnmatch.fnmatch(source, each) for each in let_in), source


def test_the_image_runs_as_a_user_without_rights_and_ends_in_order() -> None:
    last = STAGES[-1]
    assert last.find("USER").rest == "hone"
    assert last.find("STOPSIGNAL").rest == "SIGTERM"
    assert "/ready" in last.find("HEALTHCHECK").rest
    [volume] = last.find("VOLUME").words
    assert all(
        place.startswith(f"{volume}/") for place in (last.variables["HONE_HOME"], last.find("WORKDIR").rest)
    )
    locks = [
        line.rest
        for stage in STAGES
        for line in stage.lines
        if "install" in line.rest and ".lock" in line.rest
    ]
    assert locks
    for step in " ".join(locks).split("&&"):
        assert "--require-hashes" in step


@pytest.mark.parametrize("name", OURS)
def test_a_service_starts_with_a_command_that_hone_takes_and_has_what_it_names(name: str) -> None:
    service = SERVICES[name]
    program, *arguments = map(str, service["command"])
    assert (program, objection(arguments)) == ("hone", "")
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    whole = compose.read(COMPOSE, {})
    for each in service["secrets"]:
        assert whole["secrets"][each] == {"file": f"./secrets/{each}"}
        assert "/secrets/" in (ROOT / ".gitignore").read_text("utf-8").split()
    for each in service["volumes"]:
        source, place = each.split(":")[:2]
        if source.startswith("./"):
            assert (ROOT / source).is_file()
        else:
            assert source in whole["volumes"]
            assert place in STAGES[-1].find("VOLUME").words


def test_the_settings_of_the_services_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "hone.toml").write_text((ROOT / "deploy" / "hone.toml").read_text("utf-8"), "utf-8")
    settings = read(tmp_path, {})
    assert all(
        int(SERVICES[name]["stop_grace_period"][:-1]) > settings.serve.drain + 10 + 5 for name in OURS
    ), "Docker would kill what ends in order"


def test_no_two_services_share_a_home() -> None:
    homes = [each for name in OURS for each in SERVICES[name]["volumes"] if each.endswith(":/var/lib/hone")]
    assert len(homes) == len(set(homes)) == len(OURS)


def test_secrets_become_variables_and_nothing_else_does(tmp_path: Path) -> None:
    (tmp_path / "HONE_DATABASE").write_text("postgresql://hone:a b$c'd@db/hone\n")
    (tmp_path / "hone_password").write_text("twelve letters")
    show = "import os; print(os.environ['HONE_DATABASE'], sorted(os.environ))"
    done = subprocess.run(
        [ROOT / "deploy" / "entrypoint.sh", sys.executable, "-c", show],
        env={"SECRETS": str(tmp_path), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=True,
    )
    words, _, names = done.stdout.partition(" [")
    assert words == "postgresql://hone:a b$c'd@db/hone"
    assert "'hone_password'" not in names
    assert "SECRETS" not in names
