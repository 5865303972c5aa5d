"""The dashboard's files: which paths show them, how they are cached, and what the page says before it is built."""

import gzip
import json
from pathlib import Path

import httpx
import pytest

from remit.server.app import MOUNTS
from remit.server.routes import ROWS
from remit.server.static import FOLDER, POLICY, StaticPage
from server.serving import app_of, client
from teams import team

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
PAGES = (
    "/",
    "/runs",
    "/runs/",
    "/runs/a%2Fb",
    "/runs/a/b",
    "/approvals",
    "/agents/lead",
    "/context",
    "/spend",
    "/settings",
)
NOT_PAGES = ("/v1", "/v1/", "/v1/nothing", "/nothing", "/index.html", "/spend/more", "//runs", "/docs/x", "", "runs")
INDEX = b"<!doctype html><title>built</title>"


@pytest.fixture
def built(tmp_path: Path) -> StaticPage:
    (tmp_path / "page" / "assets").mkdir(parents=True)
    (tmp_path / "page" / "index.html").write_bytes(INDEX)
    (tmp_path / "page" / "assets" / "a-1.js").write_text("1")
    (tmp_path / "page" / "licences.txt").write_text("free")
    (tmp_path / "secret.js").write_text("secret")
    return StaticPage(tmp_path / "page")


@pytest.mark.rule("page.paths")
def test_only_the_paths_of_pages_show_the_page(built: StaticPage):
    for path in PAGES:
        shown = built.answer(path)
        assert shown is not None, path
        assert (shown.body, shown.headers["cache-control"]) == (INDEX, "no-store")
    for path in NOT_PAGES:
        assert built.answer(path) is None, path
    for row in ROWS:
        assert built.answer(row.path) is None, row.path
    for mount in MOUNTS:
        assert built.answer(mount.prefix) is None
        assert built.answer(f"{mount.prefix}/x") is None


@pytest.mark.rule("page.paths")
def test_files_come_from_the_folder_alone(built: StaticPage):
    script = built.answer("/assets/a-1.js")
    assert script is not None
    assert script.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert script.headers["content-type"].startswith("text/javascript")
    assert (text := built.answer("/licences.txt")) is not None
    assert text.headers["cache-control"] == "no-cache"
    for path in ("/../secret.js", "/assets/../../secret.js", "/assets/%2e%2e/%2e%2e/secret.js", "/assets", "/assets/"):
        assert built.answer(path) is None, path


def test_a_page_that_is_built_again_is_read_again(tmp_path: Path):
    page = StaticPage(tmp_path)
    assert (plain := page.answer("/")) is not None
    assert b"make dashboard" in plain.body
    (tmp_path / "index.html").write_bytes(INDEX)
    assert (shown := page.answer("/")) is not None
    assert shown.body == INDEX
    (tmp_path / "index.html").unlink()
    assert (gone := page.answer("/")) is not None
    assert gone.body == plain.body


@pytest.mark.rule("page.policy")
async def test_a_page_has_the_policy_also_before_it_is_built():
    with team() as rt:
        async with client(app_of(rt), "") as http:
            got = await http.get("/")
            assert (got.status_code, got.headers["content-security-policy"]) == (200, POLICY)
            assert (got.headers["x-frame-options"], got.headers["referrer-policy"]) == ("DENY", "no-referrer")
            assert (await http.head("/runs/x")).status_code == 200
            assert (await http.post("/runs")).status_code == 404
            elsewhere: httpx.Response = await http.get("/v1/nothing")
            assert elsewhere.json()["code"] == "no-such-path"
    assert "unsafe" not in POLICY
    assert "http" not in POLICY


@pytest.mark.rule("page.packed")
async def test_scripts_are_sent_compressed_and_unpacked_for_a_client_without_gzip(tmp_path: Path):
    (tmp_path / "index.html").write_bytes(INDEX)
    (tmp_path / "app.js.gz").write_bytes(gzip.compress(b"let a = 1"))
    page = StaticPage(tmp_path)
    assert (sent := page.answer("/app.js", "br, gzip")) is not None
    assert (sent.headers["content-encoding"], sent.headers["vary"]) == ("gzip", "Accept-Encoding")
    assert sent.headers["content-type"].startswith("text/javascript")
    assert gzip.decompress(bytes(sent.body)) == b"let a = 1"
    assert (plain := page.answer("/app.js", "identity")) is not None
    assert (plain.body, plain.headers["vary"]) == (b"let a = 1", "Accept-Encoding")
    assert "content-encoding" not in plain.headers


@pytest.mark.rule("page.size")
def test_the_built_page_is_small():
    if not (FOLDER / "index.html").exists():
        pytest.skip("the dashboard is not built: `make dashboard` builds it")
    sizes = {str(file.relative_to(FOLDER)): file.stat().st_size for file in FOLDER.rglob("*") if file.is_file()}
    assert sum(sizes.values()) <= 250_000, sizes
    licences = (FOLDER / "licences.txt").read_text()
    assert all(words in licences for words in ("SIL OPEN FONT LICENSE", "The MIT License"))


@pytest.mark.rule("page.size")
def test_packages_are_pinned_exactly_and_their_lock_names_no_host():
    folder = ROOT / "dashboard"
    asked = json.loads((folder / "package.json").read_text())
    pins = {**asked["dependencies"], **asked["devDependencies"], **asked["overrides"]}
    assert [name for name, version in pins.items() if not version[0].isdigit()] == []
    text = (folder / "package-lock.json").read_text()
    assert "://" not in text
    packages = json.loads(text)["packages"]
    assert [name for name, one in packages.items() if name and not one.get("integrity")] == []
    there = {name.rpartition("node_modules/")[2] for name in packages}
    optional = {name for one in packages.values() for name in one.get("optionalDependencies", ())}
    assert optional <= there, "the lock is for all platforms: remove it and node_modules, then make it again"
