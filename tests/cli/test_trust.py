"""A folder of someone else gives nothing away to commands that only look: no password, no import, no MCP server."""

import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands import plain_environment
from programs import Said, ran

pytestmark = pytest.mark.rule("trust.folder")

# Everything that does not run agents and gets its store from the file.
LOOKING = [
    *(("runs",), ("show",), ("flow",), ("history",), ("stats",), ("ps",), ("status", "x"), ("watch",), ("agents",)),
    *(
        ("approvals",),
        ("money", "spend"),
        ("money",),
        ("money", "uncertain"),
        ("breakers",),
        ("cooling",),
        ("doctor",),
        ("wait", "x"),
    ),
    *(("cancel", "x"), ("retry", "x"), ("prune", "--days", "1"), ("context", "ls"), ("keys", "ls"), ("find", "help")),
    *(("backup", "copy.db"), ("db", "migrate"), ("approve", "x"), ("answer", "x", "yes"), ("breaker", "reset", "x")),
]
AGENT = '[agents.desk]\nfunction = "hooks:desk"\ninstructions = "help"\n'
CANARY = "import pathlib\npathlib.Path('imported').touch()\nasync def desk(turn):\n    return 'done'\n"


class Listener:
    """A server that takes connections and remembers what it was told. It asks for a password in plain text."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.heard: list[bytes] = []
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                first = connection.recv(4_096)
                if first[4:8] == (80_877_103).to_bytes(4, "big"):  # it asks for TLS
                    connection.sendall(b"N")
                    first = connection.recv(4_096)
                connection.sendall(b"R" + (8).to_bytes(4, "big") + (3).to_bytes(4, "big"))
                self.heard.append(first + connection.recv(4_096))

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


@pytest.fixture
def listener() -> Iterator[Listener]:
    listener = Listener()
    yield listener
    listener.close()


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config"


@pytest.fixture
def folder(tmp_path: Path, listener: Listener) -> Path:
    """A folder of someone else."""
    made = tmp_path / "cloned"
    made.mkdir()
    (made / "hooks.py").write_text(CANARY)
    (made / "remit.toml").write_text(f"{AGENT}[store]\naddress = 'postgresql://me@127.0.0.1:{listener.port}/x'\n")
    return made


def remit(folder: Path, config: Path, *words: str, **variables: str) -> Said:
    passwords = config.parent / "passwords"
    passwords.write_text("*:*:*:*:of-the-file\n")
    passwords.chmod(0o600)
    env = {"XDG_CONFIG_HOME": str(config), "PGPASSWORD": "of-the-environment", "PGPASSFILE": str(passwords)}
    return ran("-m", "remit.cli", *words, cwd=folder, env={**plain_environment(), **env, **variables})


@pytest.mark.parametrize("words", LOOKING, ids=" ".join)
def test_looking_connects_to_nobody_and_imports_nothing(
    words: tuple[str, ...], folder: Path, config: Path, listener: Listener
):
    done = remit(folder, config, *words)
    assert done.returncode == 2
    assert "its folder is not trusted. remit did not connect" in done.stderr
    assert "`remit trust`" in done.stderr
    assert listener.heard == []
    assert not (folder / "imported").exists()


def test_a_folder_that_is_trusted_may_be_connected_to_until_its_file_asks_for_more(
    folder: Path, config: Path, listener: Listener
):
    told = remit(folder, config, "trust").stdout
    assert "is trusted. Commands that only read may now:" in told
    assert f"connect to postgresql://me@127.0.0.1:{listener.port}/x" in told
    assert "import hooks" in told
    remit(folder, config, "runs")
    assert b"of-the-environment" in b"".join(listener.heard)
    heard = len(listener.heard)
    file = folder / "remit.toml"
    file.write_text(file.read_text().replace('"help"', '"help people"'))  # words need no trust
    remit(folder, config, "runs")
    assert len(listener.heard) > heard
    heard = len(listener.heard)
    file.write_text(file.read_text().replace("/x'", "/another'"))
    assert "not trusted" in remit(folder, config, "runs").stderr
    assert len(listener.heard) == heard


def test_a_store_that_is_said_on_the_command_line_is_connected_to(folder: Path, config: Path, listener: Listener):
    address = f"postgresql://me@127.0.0.1:{listener.port}/x"
    remit(folder, config, "runs", "--store", address)
    assert listener.heard
    listener.heard.clear()
    remit(folder, config, "runs", REMIT_STORE=address)
    assert listener.heard


@pytest.mark.parametrize(
    "store",
    [
        "address = 'host=prod.example hostaddr=127.0.0.1 port={port} dbname=x'",  # the password of prod.example
        "path = 'host=127.0.0.1 port={port} dbname=x'",
        "address = 'POSTGRES://me@127.0.0.1:{port}/x?passfile=/etc/passwd'",
    ],
)
def test_other_ways_to_write_a_server_are_servers(store: str, folder: Path, config: Path, listener: Listener):
    (folder / "remit.toml").write_text(f"{AGENT}[store]\n{store.format(port=listener.port)}\n")
    assert "not trusted" in remit(folder, config, "runs").stderr
    assert listener.heard == []


@pytest.mark.parametrize(
    "words", [("check",), ("agents", "-v"), ("agents", "remit.toml"), ("find", "help")], ids=" ".join
)
def test_checking_and_finding_import_nothing_and_start_no_server(words: tuple[str, ...], folder: Path, config: Path):
    server = "[mcp.x]\ncommand = ['touch', 'started']\nallow = ['y']\n"
    (folder / "remit.toml").write_text(f"{AGENT}[store]\npath = 'remit.db'\n{server}")
    done = remit(folder, config, *words)
    assert "so remit imported no module of it and started no server" in done.stderr
    assert done.returncode in (0, 4)
    assert not (folder / "imported").exists()
    assert not (folder / "started").exists()
    remit(folder, config, "trust")
    remit(folder, config, *words)
    assert (folder / "imported").exists()
    assert (folder / "started").exists() == (words == ("check",))


def test_modules_and_names_that_are_missing_are_told_without_an_import(folder: Path, config: Path):
    (folder / "remit.toml").write_text(
        "[agents.a]\nfunction = 'hooks:gone'\n[agents.b]\nfunction = 'nowhere_at_all:x'\n"
        "[agents.c]\nfunction = 'broken:x'\n[agents.d]\nfunction = 'json:dumps'\n"
    )
    (folder / "broken.py").write_text("def x(:\n")
    done = remit(folder, config, "check")
    assert done.returncode == 2
    assert "module 'hooks' has no 'gone'" in done.stdout
    assert "module 'nowhere_at_all' cannot be imported" in done.stdout
    assert "module 'broken' cannot be imported" in done.stdout
    assert "json" not in done.stdout
    assert not (folder / "imported").exists()


def test_running_a_team_takes_one_command_and_trusts_its_folder(folder: Path, config: Path):
    (folder / "remit.toml").write_text(f"{AGENT}[store]\npath = 'remit.db'\n")
    assert remit(folder, config, "run", "desk", "hello").stdout.strip().startswith("done")
    assert remit(folder, config, "check").stderr == ""
    assert json.loads(remit(folder, config, "trust", "--list", "--json").stdout) == [str(folder.resolve())]


def test_a_team_that_init_wrote_is_trusted(tmp_path: Path, config: Path):
    assert remit(tmp_path, config, "init", "mine").returncode == 0
    assert remit(tmp_path / "mine", config, "check").stderr == ""


def test_trust_is_kept_outside_listed_and_removed(folder: Path, config: Path):
    assert remit(folder, config, "trust", "--list").stdout == "no folder is trusted\n"
    before = sorted(one.name for one in folder.iterdir())
    remit(folder.parent, config, "trust", "cloned")
    assert sorted(one.name for one in folder.iterdir()) == before
    kept = config / "remit" / "trusted.json"
    assert kept.stat().st_mode & 0o077 == 0
    assert remit(folder, config, "trust", "--list").stdout.strip() == str(folder.resolve())
    assert "is no longer trusted" in remit(folder, config, "trust", "--remove").stdout
    assert "not trusted" in remit(folder, config, "runs").stderr
    again = remit(folder, config, "trust", "--remove")
    assert (again.returncode, "is not trusted" in again.stderr) == (4, True)
    empty = remit(folder.parent, config, "trust")
    assert (empty.returncode, "there is no remit.toml in" in empty.stderr) == (2, True)
    kept.write_text("{")
    assert "is not what remit wrote; remove it" in remit(folder, config, "runs").stderr


def test_the_environment_names_folders_below_which_all_are_trusted(folder: Path, config: Path, listener: Listener):
    remit(folder, config, "runs", REMIT_TRUSTED=f"relative{os.pathsep}{folder.parent}")
    assert listener.heard
    listener.heard.clear()
    remit(folder, config, "runs", REMIT_TRUSTED=f".{os.pathsep}{folder.parent}/cl")
    assert listener.heard == []


def test_a_link_to_a_trusted_folder_is_that_folder(folder: Path, config: Path, listener: Listener):
    remit(folder, config, "trust")
    (folder.parent / "link").symlink_to(folder)
    remit(folder.parent / "link", config, "runs")
    assert listener.heard


@pytest.mark.rule("store.address")
@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:SECRET@h/x",
        "postgresql://me:SEC/RET@h/x",
        "postgresql://me:SEC RET@h/x",
        "postgresql://h/x?password=SECRET",
        "host=h password='SEC RET'",
    ],
)
@pytest.mark.parametrize("words", [("runs",), ("trust",), ("trust", "--json"), ("check",)], ids=" ".join)
def test_no_password_of_an_address_is_shown(words: tuple[str, ...], address: str, folder: Path, config: Path):
    (folder / "remit.toml").write_text(f'{AGENT}[store]\naddress = "{address}"\n')
    done = remit(folder, config, *words)
    assert "RET" not in done.stdout + done.stderr
