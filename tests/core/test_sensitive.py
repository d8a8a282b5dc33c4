"""What runs by itself and what holds secrets is known by its name, wherever it lies; ordinary work is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.sensitive import (
    is_sealed,
    is_secret,
    is_sensitive,
    secret_places,
    startup_places,
)

SENSITIVE = {
    "git runs it": """
        .git .git/config .git/hooks/pre-commit .git/index .gitconfig .husky/pre-push .githooks/x
    """,
    "CI runs it": """
        .github/workflows/x.yml .gitlab-ci.yml .circleci/config.yml azure-pipelines.yml Jenkinsfile .drone.yml
        .travis.yml bitbucket-pipelines.yml .buildkite/pipeline.yml .woodpecker/a.yml
    """,
    "your shell runs it": """
        .envrc .bashrc .profile .zshrc .config/fish/config.fish .config/systemd/user/x.service .local/bin/tool
    """,
    "your editor runs it": """
        .vscode/tasks.json .vscode/settings.json .vscode/launch.json .idea/workspace.xml .exrc .nvimrc .vimrc
        .dir-locals.el my.code-workspace .devcontainer/devcontainer.json
    """,
    "your debugger runs it": ".gdbinit",
    "it steers agents": ".hone/hone.toml .claude/settings.json .mcp.json .cursor/mcp.json",
}
HARMLESS = """
    README.md src/main.py .gitignore .gitattributes .gitmodules .github/CODEOWNERS .github/dependabot.yml
    .vscode/extensions.json .editorconfig Makefile package.json config hooks/useThing.ts workflows/x.yml
    .env.example .python-version gitconfig .gitlab/issue_templates/bug.md tasks.json settings.json
    src/envrc github/workflows/x.yml .github Dockerfile AGENTS.md .vscode id_map.py notes.keys
"""
WRITABLE_BY_GIT = """
    .git/index .git/index.lock .git/HEAD .git/ORIG_HEAD .git/FETCH_HEAD .git/COMMIT_EDITMSG .git/MERGE_MSG
    .git/objects/ab/cdef .git/objects/info/alternates .git/refs/heads/main .git/refs/heads/config
    .git/refs/heads/hooks .git/logs/HEAD .git/logs/refs/heads/config .git/packed-refs .git/info/exclude
    .git/rebase-merge/done .git/modules/sub/index .git/modules/sub/refs/heads/config .git/worktrees/w/HEAD
    .git/worktrees/w/index .git sub/.git/index .git/shallow .git/info/attributes
"""
SEALED_IN_GIT = """
    .git/config .git/hooks .git/hooks/pre-commit .git/config.worktree .git/commondir sub/.git/config
    a/b/.git/hooks/post-merge .git/modules/sub/config .git/modules/a/b/hooks/pre-push
    .git/worktrees/w/config.worktree .git/worktrees/w/commondir .GIT/Config
"""
SECRET = """
    ~/.ssh/id_rsa ~/.ssh/id_ed25519_work ~/.gnupg/secring.gpg ~/.aws/credentials ~/.netrc ~/.pgpass ~/.npmrc
    ~/.pypirc ~/.kube/config ~/.mozilla/firefox/x/logins.json ~/.config/google-chrome/Default/Cookies
    ~/.local/share/keyrings/login.keyring ~/.cargo/credentials.toml ~/.config/uv/credentials.toml ~/.env
    /work/app/.env /work/app/.env.local /work/app/prod.env /work/app/.env.production.local /etc/shadow
    /etc/sudoers.d/x /etc/ssh/ssh_host_rsa_key /proc/1/environ /proc/self/mem ~/.docker/config.json
    ~/.git-credentials ~/.config/gh/hosts.yml ~/.bash_history /work/app/id_ed25519 ~/safe.kdbx ~/kubeconfig
    ~/.m2/settings.xml ~/.my.cnf /run/secrets/db
"""
OPEN = """
    ~/.ssh/id_rsa.pub ~/.ssh/known_hosts ~/.cargo/bin/cargo ~/.cargo/config.toml /work/app/.env.example
    /work/app/environment.py /etc/passwd /etc/hosts /proc/cpuinfo /work/app/example.env ~/.gitconfig
    /work/app/src/identity.py /work/app/.envrc ~/.docker/notes /work/ssh/id /etc/ssh/ssh_config /
    /work/app/certificate.pem ~/notes.txt /usr/share/doc/x ~/.local/share/uv/tools/x/bin/x
"""

ordinary = st.lists(
    st.text("abcdefghijklmnopqrstuvwxyzäß中0123456789_-", min_size=1, max_size=12).map(
        lambda name: f"{name}-d"
    ),
    max_size=4,
)


def every() -> list[tuple[str, str]]:
    return [(path, reason) for reason, paths in SENSITIVE.items() for path in paths.split()]


@pytest.mark.parametrize(("path", "reason"), every())
def test_a_sensitive_place_is_known_with_its_reason(path: str, reason: str) -> None:
    assert is_sensitive(path.split("/")) == reason


@pytest.mark.parametrize("path", HARMLESS.split())
def test_ordinary_files_are_not_sensitive(path: str) -> None:
    assert is_sensitive(path.split("/")) == is_sealed(path.split("/")) == ""


@given(above=ordinary, below=ordinary, which=st.sampled_from(every()), loud=st.booleans())
def test_a_sensitive_place_stays_so_at_any_depth_and_in_any_case_with_all_that_lies_in_it(
    above: list[str], below: list[str], which: tuple[str, str], loud: bool
) -> None:
    path, reason = which
    parts = [*above, *(path.upper() if loud else path).split("/")]
    assert is_sensitive(parts) == reason
    inner = [*parts, *below]
    assert is_sensitive(inner) == ("" if below and path.endswith(".code-workspace") else reason)
    assert is_sensitive([*above, *below]) == ""


@pytest.mark.parametrize("path", WRITABLE_BY_GIT.split())
def test_commands_may_write_what_git_keeps_though_file_tools_ask(path: str) -> None:
    assert is_sealed(path.split("/")) == ""
    assert is_sensitive(path.split("/")) == "git runs it"


@pytest.mark.parametrize("path", SEALED_IN_GIT.split())
def test_commands_may_not_write_what_says_which_programs_git_runs(path: str) -> None:
    assert is_sealed(path.split("/")) == "git runs it"


@given(st.lists(st.sampled_from([".git", "hooks", "config", "refs", "modules", ".github", "workflows", "x"])))
def test_what_is_sealed_is_sensitive(parts: list[str]) -> None:
    assert is_sensitive(parts) or not is_sealed(parts)


@pytest.mark.parametrize("path", SECRET.split())
def test_a_secret_is_known_by_its_path(path: str) -> None:
    for home in ("/home/me", "/root", "/Users/Me"):
        assert is_secret(path.replace("~", home))
        if not path.startswith(("/etc", "/proc", "/run")):
            assert is_secret(path.replace("~", home).upper())


@pytest.mark.parametrize("path", OPEN.split())
def test_what_holds_no_secret_is_open(path: str) -> None:
    assert is_secret(path.replace("~", "/home/me")) == ""


def test_the_places_of_a_home_folder_are_those_of_the_rules() -> None:
    assert {(".ssh",), (".config", "gh"), (".netrc",), (".mozilla",)} <= {*secret_places()}
    assert {(".bashrc",), (".config", "systemd"), (".local", "bin"), (".gitconfig",)} <= {*startup_places()}
    assert all(is_secret("/".join(("/home/me", *place))) for place in secret_places())
    assert all(is_sensitive(place) for place in startup_places())
