"""What the owner sets for commands holds where it should, and what cannot hold is refused in a sentence."""

from pathlib import Path

import pytest

from hone.core.errors import SettingsError
from hone.sandbox.spec import SandboxAccess
from hone.settings import read


def settle(home: Path, text: str) -> Path:
    (home / "hone.toml").write_text(text)
    return home


def test_a_project_adds_to_what_holds_everywhere_and_the_inner_one_wins(home: Path, tmp_path: Path) -> None:
    tmp_path = tmp_path.resolve()
    for name in ("data", "out", "more", "project/inner"):
        (tmp_path / name).mkdir(parents=True)
    settings = read(
        settle(
            home,
            f'[sandbox]\nread = ["{tmp_path}/data", "{tmp_path}/absent"]\nenv = ["A"]\nnetwork = "never"\n'
            f'[projects."{tmp_path}/project".sandbox]\nwrite = ["{tmp_path}/out"]\nenv = ["B"]\n'
            'network = "ask"\n'
            f'[projects."{tmp_path}/project/inner".sandbox]\nread = ["{tmp_path}/more"]\nnetwork = "allow"\n',
        )
    )
    assert settings.sandbox_in(tmp_path).access() == SandboxAccess((tmp_path / "data",), (), ("A",))
    assert settings.sandbox_in(tmp_path).network == "never"
    project = settings.sandbox_in(tmp_path / "project" / "src")
    assert project.access() == SandboxAccess((tmp_path / "data",), (tmp_path / "out",), ("A", "B"))
    assert project.network == "ask"
    inner = settings.sandbox_in(tmp_path / "project" / "inner")
    assert inner.network == "allow"
    assert inner.access().read == (tmp_path / "data", tmp_path / "more")
    assert settings.sandbox_in(Path("/")).network == "never"


def test_a_tilde_is_the_users_home(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "data").mkdir()
    settings = read(
        settle(home, '[sandbox]\nread = ["~/data"]\n[projects."~/data".sandbox]\nnetwork = "never"\n')
    )
    assert settings.sandbox_in(tmp_path).access().read == (tmp_path.resolve() / "data",)
    assert settings.sandbox_in(tmp_path / "data").network == "never"


@pytest.mark.parametrize("value", ["ask", "allow", "never"])
def test_the_former_place_of_network_still_counts(home: Path, value: str) -> None:
    assert read(settle(home, f'network = "{value}"\n')).sandbox_in(Path("/")).network == value
    assert read(settle(home, f'network = "{value}"\n[sandbox]\nenv = ["A"]\n')).sandbox.network == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('network = "ask"\n[sandbox]\nnetwork = "ask"\n', "network is set twice; keep the one in [sandbox]"),
        ('[sandbox]\nread = ["data"]\n', "'data' in read of sandbox must begin with / or ~/"),
        ('[sandbox]\nwrite = ["/"]\n', "'/' in write of sandbox is the whole machine"),
        ('[sandbox]\nread = ["/.."]\n', "'/..' in read of sandbox is the whole machine"),
        ('[sandbox]\nwrite = ["/usr"]\n', "holds the system itself (/usr)"),
        ('[sandbox]\nwrite = ["{home}"]\n', "is Hone's own home, which no command may see"),
        ('[sandbox]\nread = ["{home}/skills"]\n', "is Hone's own home, which no command may see"),
        ('[projects."/x".sandbox]\nwrite = ["{home}/hone.db"]\n', "is Hone's own home"),
        ('[projects."x".sandbox]\nenv = ["A"]\n', "name a project by its folder"),
        ('[sandbox]\nenv = ["A=b"]\n', "'A=b' in env of sandbox is not the name of an environment variable"),
        ('[sandbox]\nenv = ["PATH"]\n', "Hone makes PATH itself"),
        ('[sandbox]\nnetwork = "maybe"\n', 'line 2: sandbox.network must be one of "ask", "allow", "never".'),
        ('[sandbox]\nreed = ["/x"]\n', "line 2: there is no key sandbox.reed (did you mean sandbox.read?)"),
    ],
)
def test_what_cannot_hold_is_refused_in_a_sentence(home: Path, text: str, reason: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read(settle(home, text.replace("{home}", str(home))))
    assert reason in str(caught.value)
    assert str(caught.value).startswith(str(home / "hone.toml"))
