"""Names: the letters, and that a name stands for a class of task."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.errors import Refused
from hone.knowledge.skills import bundled
from hone.knowledge.skills.naming import SHAPE, check_class, check_name
from tests.skills.routing.library import library

REFUSED = {
    "one ticket": """
        pr-123 issue-42-login fix-for-pr-7 jira-1234 proj-4711 abc-123-crash 1234-login cve-4711 gh-88 bug-17
        ticket99 hotfix-123456
    """,
    "repeats an error": """
        typeerror type-error key-error-in-parser nullpointerexception module-not-found-error cannot-import
        failed-to-fetch no-such-file connection-refused traceback-in-loader enoent error-404 http-500
        exit-code-137 permission-denied-on-save segfault pip-not-working
    """,
    "carries a date": """
        release-2026 notes-2026-11-15 november-2026 q3-2026 sprint-14 week-46 march-12-report 20261115
    """,
    "one day's task": """
        fix-login fix-the-build debug-crash try-new-parser temp-notes wip-deploy todo-list today deploy-today
        cleanup-tmp test-1 test demo foo my-skill skill release-notes-v2 report-final look-into-latency
        one-off-import notes login-fix
    """,
    "only insiders": """
        a1b2c3d a1b2c3d4e5f6 deploy-9f8e7d6c x7k2p9 operation-thunder codename-falcon project-x
    """,
    "does not say what is done": """
        pandas pytest docker python using-docker pandas-tips how-to-use-git working-with-react k8s-basics
        github-actions sqlalchemy-guide
    """,
}
TAKEN = """
    release-notes python-packaging slow-queries error-triage error-handling exception-handling image-sizes
    pandas-data-cleaning debugging-methodically fixing-flaky-tests testing-strategy code-review iso-8601-dates
    rfc-writing sha-256-checksums utf-8-repair http-caching b2b-sales s3-uploads oauth2-login k8s-rollouts
    ipv4-to-ipv6 terror-prevention broken-link-checks day-2-operations session-management project-planning
    temperature-sensors tryout-planning mistake-review marching-band-practice x86-assembly mp3-tagging
    git-history-cleanup pytest-fixtures react-performance quick-start-guides a11y-audits
"""


@pytest.mark.parametrize(
    ("name", "reason"), [(name, reason) for reason, names in REFUSED.items() for name in names.split()]
)
def test_a_name_that_would_not_be_found_again_is_refused_with_advice(name: str, reason: str) -> None:
    check_name(name)
    with pytest.raises(Refused) as refusal:
        check_class(name)
    assert reason in str(refusal.value)
    assert "release-notes" in str(refusal.value)


def test_a_name_for_a_class_of_task_is_taken() -> None:
    plausible = [*TAKEN.split(), *bundled.names(), *(skill.name for skill in library())]
    assert [name for name in plausible if check_class(name) != name] == []


@pytest.mark.parametrize(
    "name", ["", "-", "-a", "a-", "a--b", "A", "a_b", "a b", "é", "a\n", "a/b", "..", "x" * 65, "ａ"]
)
def test_letters_that_no_name_may_have_are_refused(name: str) -> None:
    with pytest.raises(Refused, match="cannot be the name of a skill"):
        check_name(name)


@given(st.text(max_size=70) | st.from_regex(SHAPE.pattern, fullmatch=True))
def test_any_text_is_a_name_or_refused(name: str) -> None:
    with suppress(Refused):
        assert SHAPE.fullmatch(check_class(name))
