"""Name the places that run by themselves and the places that hold secrets. Names only: nothing is opened.

A place is sensitive if something runs it or obeys it without being told to: git runs hooks, a CI server runs
workflows, a shell runs its start files, an editor its tasks, an agent obeys its settings. A place is secret
if it holds keys, passwords or another program's private data.

Names are compared without regard to case, because some file systems do so, too.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath

GIT = "git runs it"
CI = "CI runs it"
SHELL = "your shell runs it"
EDITOR = "your editor runs it"
DEBUGGER = "your debugger runs it"
AGENTS = "it steers agents"
PYTHON = "Python runs it"
LOGIN = "it decides who may log in"

KEYS = "it holds keys"
PASSWORDS = "it holds passwords"
BROWSER = "it holds a browser's data"
HISTORY = "it holds what was typed"
SYSTEM = "the system keeps secrets there"

Place = tuple[str, ...]
"""Path parts in order. Wherever they follow each other in a path, it leads to the place or into it."""

_GIT = ".gitconfig .config/git .githooks .husky .pre-commit-config.yaml lefthook.yml .lefthook.yml"
_CI = """
    .github/workflows .github/actions .gitea/workflows .forgejo/workflows .gitlab-ci.yml .gitlab/ci .circleci
    .travis.yml .drone.yml .woodpecker .woodpecker.yml .buildkite .cirrus.yml .semaphore .teamcity .tekton
    .appveyor.yml appveyor.yml azure-pipelines.yml azure-pipelines.yaml .azure-pipelines
    bitbucket-pipelines.yml cloudbuild.yaml cloudbuild.yml jenkinsfile .builds .build.yml
"""
_SHELL = """
    .envrc .autoenv.zsh .profile .bash_profile .bash_login .bashrc .bash_logout .bash_aliases .inputrc
    .zshenv .zprofile .zshrc .zlogin .zlogout .kshrc .cshrc .tcshrc .login .logout .xprofile .xinitrc
    .xsession .xsessionrc .pam_environment .tmux.conf .mise.toml mise.toml .config/fish .config/autostart
    .config/systemd .config/environment.d .config/direnv .config/mise .local/bin
"""
_EDITOR = """
    .vscode/tasks.json .vscode/settings.json .vscode/launch.json .vscode/mcp.json .devcontainer
    .devcontainer.json .idea .fleet .zed .exrc .gvimrc .nvimrc .nvim.lua .vimrc .lvimrc .vim .emacs .emacs.d
    .dir-locals.el .dir-locals-2.el .ycm_extra_conf.py .config/nvim .config/emacs .config/helix .helix
"""
_DEBUGGER = ".gdbinit .lldbinit"
_AGENTS = """
    .hone .claude .claude.json .mcp.json .codex .cursor .gemini .windsurf .continue .roo .kiro .opencode
    opencode.json .aider.conf.yml
"""
_PYTHON = "sitecustomize.py usercustomize.py"
_LOGIN = ".ssh .rhosts .shosts .k5login"
_KEYS = """
    .ssh .gnupg .aws .azure .kube .password-store .git-credentials .config/git/credentials .pypirc .npmrc
    .docker/config.json .config/containers/auth.json .cargo/credentials .cargo/credentials.toml
    .gem/credentials .config/gh .config/glab-cli .config/hub .config/gcloud .config/doctl .config/rclone
    .config/sops .config/age .config/op .config/uv/credentials .config/uv/credentials.toml
    .local/share/uv/credentials .config/pip .pip .config/pypoetry/auth.toml .config/composer/auth.json
    .composer/auth.json .bundle/config .m2/settings.xml .m2/settings-security.xml .gradle/gradle.properties
    .terraform.d/credentials.tfrc.json .terraformrc .vault-token .s3cfg .boto .databrickscfg .fly .netrc
    _netrc .config/heroku .config/netlify .config/anthropic .config/openai .codex/auth.json
    .claude/.credentials.json .gemini/oauth_creds.json .config/configstore .ethereum/keystore .bitcoin
    .electrum etc/npmrc pip.conf
"""
_PASSWORDS = """
    .pgpass .my.cnf .mylogin.cnf .local/share/keyrings .local/share/kwalletd library/keychains .smbcredentials
    .config/keepassxc .config/1password .config/bitwarden .authinfo .authinfo.gpg .htpasswd .msmtprc
"""
_BROWSER = """
    .mozilla .thunderbird .config/google-chrome .config/chromium .config/bravesoftware .config/microsoft-edge
    .config/vivaldi .config/opera .config/signal .config/slack .config/discord .var/app snap/firefox
    library/cookies library/safari .librewolf
"""
_HISTORY = """
    .bash_history .zsh_history .python_history .node_repl_history .psql_history .mysql_history
    .sqlite_history .rediscli_history .irb_history .lesshst .viminfo .local/share/fish/fish_history
"""
_OF_THE_SYSTEM = """
    /etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow- /etc/sudoers /etc/sudoers.d /etc/ssl/private
    /etc/krb5.keytab /etc/security/opasswd /run/secrets /var/run/secrets /var/lib/docker /var/spool/cron
"""

_WORKSPACES = (".code-workspace",)
_STORES = (".kdbx", ".ppk", ".p12", ".pfx", ".jks", ".keystore", ".kubeconfig")
_EXAMPLES = {"example", "examples", "sample", "template", "tmpl", "dist", "defaults", "schema"}
_KEY_FILES = ("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_xmss")
_BESIDE_KEYS = {"known_hosts", "known_hosts.old", "authorized_keys", "config"}
"""Files next to keys that are not secret."""
_OF_A_PROCESS = {"environ", "mem", "auxv", "maps"}

_DIRECTIVES = {"hooks", "config", "config.worktree", "commondir"}
"""Files of a git folder that say which programs git runs, or where that is said."""
_INNER = {"modules", "worktrees"}
_GIT_DATA = {"objects", "refs", "logs", "rr-cache", "lfs"}


def _places(*tables: tuple[str, str]) -> Mapping[str, Sequence[tuple[Place, str]]]:
    """Index places by their first part."""
    found: dict[str, list[tuple[Place, str]]] = {}
    for names, reason in tables:
        for name in names.split():
            place = tuple(name.split("/"))
            found.setdefault(place[0], []).append((place, reason))
    return found


_SENSITIVE = _places(
    *((_GIT, GIT), (_CI, CI), (_SHELL, SHELL), (_EDITOR, EDITOR), (_DEBUGGER, DEBUGGER), (_AGENTS, AGENTS)),
    *((_PYTHON, PYTHON), (_LOGIN, LOGIN)),
)
_SECRET = _places((_KEYS, KEYS), (_PASSWORDS, PASSWORDS), (_BROWSER, BROWSER), (_HISTORY, HISTORY))
_FIXED = tuple(tuple(name.split("/")[1:]) for name in _OF_THE_SYSTEM.split())


def is_sensitive(parts: Sequence[str]) -> str:
    """Return why a path below a working folder may not be written without asking, or "" if it may. Give the
    names on the way, without links and without "..". Everything in a .git folder counts."""
    names = _fold(parts)
    if ".git" in names:
        return GIT
    return _matched(names, _SENSITIVE) or (EDITOR if names and names[-1].endswith(_WORKSPACES) else "")


def is_sealed(parts: Sequence[str]) -> str:
    """Return why commands may not write a path below a working folder either, or "" if they may. These are
    the sensitive paths, except that git's objects, index and refs stay writable."""
    names = _fold(parts)
    if ".git" not in names:
        return is_sensitive(names)
    last = len(names) - 1 - names[::-1].index(".git")
    return is_sensitive(names[:last]) or (GIT if _directs_git(names[last + 1 :]) else "")


def leads_to_sensitive(name: str) -> str:
    """Return why a link of this name may not be made without asking, or "" if it may: it could stand for a
    folder with sensitive places in it."""
    first = name.casefold()
    longer = (reason for place, reason in _SENSITIVE.get(first, ()) if len(place) > 1)
    return GIT if first == ".git" else next(longer, "")


def is_secret(path: PurePath | str) -> str:
    """Return why a file may not be read without asking, or "" if it may. Give its real path, without
    links."""
    names = _fold(PurePath(path).parts)
    if not names:
        return ""
    found = _matched(names, _SECRET) or _named_as_secret(names[-1])
    if found:
        return "" if _is_public_key(names) else found
    return SYSTEM if _is_of_the_system([name for name in names if name != "/"]) else ""


def secret_places() -> Iterator[Place]:
    """Yield the places of a home folder that hold secrets."""
    for places in _SECRET.values():
        yield from (place for place, _ in places)


def startup_places() -> Iterator[Place]:
    """Yield the places of a home folder that run automatically at a login or with a program."""
    kinds = {GIT, SHELL, EDITOR, DEBUGGER, AGENTS}
    for places in _SENSITIVE.values():
        yield from (place for place, reason in places if reason in kinds)


def _fold(parts: Iterable[str]) -> list[str]:
    return [part.casefold() for part in parts if part not in ("", ".")]


def _matched(names: Sequence[str], places: Mapping[str, Sequence[tuple[Place, str]]]) -> str:
    for at, name in enumerate(names):
        for place, reason in places.get(name, ()):
            if tuple(names[at : at + len(place)]) == place:
                return reason
    return ""


def _directs_git(names: Sequence[str]) -> bool:
    """Tell whether this path below a git folder says what git runs. The git folders of submodules and
    worktrees are inside it; a branch may have any name."""
    if not names:
        return False
    if names[0] in _DIRECTIVES:
        return True
    inner = next((at for at, name in enumerate(names) if name in _DIRECTIVES), 0)
    return names[0] in _INNER and inner > 1 and _GIT_DATA.isdisjoint(names[1:inner])


def _named_as_secret(name: str) -> str:
    if name.endswith(_STORES) or name == "kubeconfig" or name.startswith(_KEY_FILES):
        return KEYS
    first, *rest = name.removeprefix(".").split(".")
    is_environment = (name.startswith(".env") and first == "env") or (rest[-1:] == ["env"] and bool(first))
    return KEYS if is_environment and _EXAMPLES.isdisjoint([first, *rest]) else ""


def _is_public_key(names: Sequence[str]) -> bool:
    return names[-1].endswith(".pub") or (".ssh" in names[-2:-1] and names[-1] in _BESIDE_KEYS)


def _is_of_the_system(names: Sequence[str]) -> bool:
    if any(tuple(names[: len(place)]) == place for place in _FIXED):
        return True
    if names[:2] == ["etc", "ssh"]:
        return names[-1].startswith("ssh_host_")
    return names[:1] == ["proc"] and names[-1] in _OF_A_PROCESS
