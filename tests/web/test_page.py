"""I3: the files of the page: from here alone, nothing inline, nothing that takes data for markup."""

import re
from pathlib import Path

import httpx2
import pytest

from hone.web.answers import POLICY
from hone.web.page import DOCUMENT, read
from tests.web.rig import running

FILES = read()
SCRIPTS = sorted(name for name in FILES if name.endswith(".js"))
READS_MARKUP = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|createContextualFragment|DOMParser|document\.write|\beval\b"
    r"|new Function|setHTML|\.src\s*=|\.srcdoc"
)
LONGEST = 200


def text(name: str) -> str:
    return FILES[name].data.decode()


async def test_the_page_and_all_it_names_come_from_this_server(home: Path, tmp_path: Path) -> None:
    async with running(home, tmp_path) as visit:
        page = await visit.client.get("/")
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert page.headers["content-security-policy"] == POLICY
        named = set(re.findall(r'(?:src|href)="([^"#]+)"', page.text))
        named |= {
            f"/static/{each}" for name in SCRIPTS for each in re.findall(r'from "\./([\w.]+)"', text(name))
        }
        assert named == {f"/static/{name}" for name in FILES if name != DOCUMENT}
        for path in sorted(named):
            found = await visit.client.get(path)
            assert found.status_code == 200, path
            again = await visit.client.get(path, headers={"if-none-match": found.headers["etag"]})
            assert (again.status_code, again.content) == (304, b"")
        for wrong in ("page.py", "..%2fpage.py", "%2e%2e/page.py", ""):
            assert (await visit.client.get(f"/static/{wrong}")).status_code == 404, wrong


async def test_whoever_is_not_let_in_does_not_get_a_file(home: Path, tmp_path: Path) -> None:
    async with running(home, tmp_path) as visit, httpx2.AsyncClient(base_url=visit.url) as stranger:
        for path in ("/", *(f"/static/{name}" for name in FILES)):
            assert (await stranger.get(path)).status_code == 401, path


def test_the_document_has_no_script_and_no_style_of_its_own() -> None:
    page = text(DOCUMENT)
    assert re.findall(r"<script[^>]*>", page) == ['<script type="module" src="/static/main.js">']
    assert "<style" not in page
    assert re.findall(r"\s(?:style|on\w+)=", page) == []


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_file_names_no_other_host(name: str) -> None:
    hosts = re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"]*", text(name))
    assert [each for each in hosts if "www.w3.org" not in each] == []
    assert "@import" not in text(name)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_small_and_takes_no_data_for_markup(name: str) -> None:
    assert READS_MARKUP.findall(text(name)) == []
    assert len(text(name).splitlines()) <= LONGEST
    assert text(name).startswith("// "), "a script begins with what it is"
