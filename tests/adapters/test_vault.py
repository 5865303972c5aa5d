"""Master keys seal secrets for one workspace and one name, and whatever else is tried is refused with a sentence."""

import base64
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.test_secret import CANARY, shown
from remit import Secret
from remit.adapters.vault import MasterVault, fresh_master, from_environment
from remit.errors import BadInput, StoreError
from remit.ports import Sealed

OLD, NEW = (base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2))
OLD_ID, NEW_ID = "72cd6e84", "75877bb4"


def vault(*masters: str) -> MasterVault:
    return MasterVault(Secret(",".join(masters or (OLD,))))


def forms(text: str) -> list[bytes]:
    """A text in all the forms in which it might be found."""
    raw = text.encode()
    return [raw, raw.hex().encode(), *(base64.b64encode(b"x" * pad + raw)[4:-4] for pad in range(3))]


@pytest.mark.rule("keys.sealed")
def test_what_is_sealed_opens_and_shows_nothing():
    sealed = vault().seal("acme", "openai", Secret(CANARY))

    assert sealed.key_id == OLD_ID == vault().newest
    assert vault().open("acme", "openai", sealed) == Secret(CANARY)
    assert not any(form in part.encode() for form in forms(CANARY) for part in sealed)
    assert vault().seal("acme", "openai", Secret(CANARY)) != sealed, "each time with another nonce"


@pytest.mark.rule("keys.rotate")
def test_the_first_master_key_seals_and_all_open():
    both, old = vault(NEW, OLD), vault().seal("acme", "openai", Secret(CANARY))

    assert both.newest == both.seal("acme", "openai", Secret(CANARY)).key_id == NEW_ID
    assert both.open("acme", "openai", old) == Secret(CANARY)
    assert vault(NEW, OLD, NEW).newest == NEW_ID


def changed(sealed: Sealed, place: int) -> Sealed:
    """The same with one letter changed, so that it stays base64."""
    letters = [*sealed.text]
    letters[place] = "A" if letters[place] != "A" else "B"
    return sealed._replace(text="".join(letters))


SEALED = vault().seal("acme", "openai", Secret(CANARY))
MIDDLE = SEALED.text.index(".")


@pytest.mark.rule("keys.bound")
@pytest.mark.parametrize(
    ("open_", "sentence"),
    [
        (lambda: vault().open("other", "openai", SEALED), "was encrypted for another workspace"),
        (lambda: vault().open("acme", "anthropic", SEALED), "was encrypted as the key 'openai'"),
        (lambda: vault().open("acmeo", "penai", SEALED), "was encrypted for another workspace"),
        (lambda: vault().open("acme", "openai", changed(SEALED, MIDDLE + 1)), "has been changed in the store"),
        (lambda: vault().open("acme", "openai", changed(SEALED, MIDDLE + 30)), "has been changed in the store"),
        (lambda: vault().open("acme", "openai", Sealed(OLD_ID, "")), "has been changed in the store"),
        (lambda: vault().open("acme", "openai", Sealed(OLD_ID, "ü.%")), "has been changed in the store"),
        (lambda: vault().open("acme", "openai", Sealed(OLD_ID, "////.////")), "has been changed in the store"),
        (lambda: vault(NEW, OLD).open("acme", "openai", SEALED._replace(key_id=NEW_ID)), "has been changed"),
        (
            lambda: vault(NEW).open("acme", "openai", SEALED),
            f"master key '{OLD_ID}', and the given master keys are {NEW_ID}",
        ),
    ],
)
def test_what_does_not_belong_here_is_refused(open_, sentence):
    with pytest.raises(StoreError, match=sentence) as no:
        open_()
    assert not any(
        form.decode() in shown(no.value, but_for=__file__) for text in (CANARY, OLD, NEW) for form in forms(text)
    )


@pytest.mark.rule("keys.bound")
def test_a_head_that_lies_opens_nothing():
    """What stands in front is for the sentence; only what is expected counts."""
    elsewhere = vault().seal("other", "openai", Secret(CANARY))
    forged = Sealed(OLD_ID, SEALED.text.split(".")[0] + "." + elsewhere.text.split(".")[1])

    with pytest.raises(StoreError, match="has been changed in the store"):
        vault().open("acme", "openai", forged)


@pytest.mark.rule("keys.bound")
@given(st.integers(0, len(SEALED.text) - 1))
def test_no_letter_can_be_changed(place: int):
    """But for the last of the head, which has bits that base64 leaves unused and nobody reads."""
    try:
        opened = vault().open("acme", "openai", changed(SEALED, place))
    except StoreError:
        return
    assert place < MIDDLE
    assert opened == Secret(CANARY)


# -- where master keys come from -------------------------------------------------------------------------------------


@pytest.fixture
def key_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "master"
    path.write_text(f"\n{NEW}\n{OLD}\n")
    path.chmod(0o600)
    monkeypatch.delenv("REMIT_MASTER_KEY", raising=False)
    monkeypatch.setenv("REMIT_MASTER_KEY_FILE", str(path))
    return path


@pytest.mark.rule("keys.master")
def test_master_keys_come_from_the_environment_or_from_a_file(key_file: Path, monkeypatch: pytest.MonkeyPatch):
    assert from_environment().newest == NEW_ID
    assert from_environment().open("acme", "openai", SEALED) == Secret(CANARY)
    key_file.write_text(OLD)
    assert from_environment().newest == OLD_ID, "it is read each time"

    monkeypatch.setenv("REMIT_MASTER_KEY", f"{OLD} , {NEW}")
    with pytest.raises(BadInput, match="are both set"):
        from_environment()
    monkeypatch.delenv("REMIT_MASTER_KEY_FILE")
    assert from_environment().newest == OLD_ID
    monkeypatch.setenv("REMIT_MASTER_KEY", "")
    with pytest.raises(BadInput, match="none is set: set REMIT_MASTER_KEY to what `remit keys master` prints"):
        from_environment()


@pytest.mark.rule("keys.master")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o610, 0o601])
def test_a_file_that_others_can_use_is_refused(key_file: Path, mode: int):
    key_file.chmod(mode)
    with pytest.raises(BadInput, match="can be used by others on this machine; run: chmod 600"):
        from_environment()
    key_file.chmod(0o400)
    assert from_environment().newest == NEW_ID


@pytest.mark.rule("keys.master")
def test_a_file_of_another_user_is_refused(key_file: Path, monkeypatch: pytest.MonkeyPatch):
    try:
        os.chown(key_file, os.geteuid() + 1, -1)
    except PermissionError:  # only root can give a file away; for everyone else root's files belong to another user
        monkeypatch.setenv("REMIT_MASTER_KEY_FILE", "/etc/passwd")
    with pytest.raises(BadInput, match="belongs to another user"):
        from_environment()


@pytest.mark.rule("keys.master")
def test_what_is_no_file_is_refused(key_file: Path, monkeypatch: pytest.MonkeyPatch):
    for path, sentence in (
        (key_file.parent, "is not a file"),
        (key_file.parent / "none", "cannot be read: No such file"),
    ):
        monkeypatch.setenv("REMIT_MASTER_KEY_FILE", str(path))
        with pytest.raises(BadInput, match=sentence):
            from_environment()
    monkeypatch.setenv("REMIT_MASTER_KEY_FILE", str(key_file))
    key_file.write_text("")
    with pytest.raises(BadInput, match="not empty"):
        from_environment()


@pytest.mark.rule("keys.master")
@pytest.mark.parametrize("wrong", ["no base64!", "c2hvcnQ=", base64.b64encode(b"x" * 33).decode(), OLD[:-1], " , ,"])
def test_what_is_no_master_key_is_refused_without_showing_any(wrong: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("REMIT_MASTER_KEY", f"{NEW},{wrong}" if wrong.strip(" ,") else wrong)
    with pytest.raises(BadInput, match="master key") as no:
        from_environment()
    assert not any(text in shown(no.value, but_for=__file__) for text in (NEW, wrong) if text.strip(" ,"))


@pytest.mark.rule("keys.master")
def test_a_fresh_master_key_is_like_no_other():
    made = {fresh_master().reveal() for _ in range(20)}

    assert len(made) == 20
    assert all(len(base64.b64decode(text, validate=True)) == 32 for text in made)
    assert MasterVault(Secret(made.pop())).newest


WITHOUT_THE_PACKAGE = """
import sys

sys.modules["cryptography"] = None
from remit import Secret
from remit.adapters.vault import MasterVault, fresh_master
print(fresh_master().reveal(), end="", flush=True)
MasterVault(Secret(sys.argv[1]))
"""


@pytest.mark.rule("keys.master")
def test_without_the_package_a_sentence_says_what_to_install():
    done = subprocess.run([sys.executable, "-c", WITHOUT_THE_PACKAGE, OLD], capture_output=True, text=True)

    assert done.returncode == 1
    assert "pip install 'remit[keys]'" in done.stderr.splitlines()[-1]
    assert OLD not in done.stderr
    assert len(base64.b64decode(done.stdout, validate=True)) == 32, "a new master key needs no package"


@pytest.mark.rule("keys.master")
@pytest.mark.parametrize("given", ["plain-text-of-a-master-key", b"bytes", None])
def test_a_master_key_that_is_no_secret_is_refused_and_not_shown(given: object):
    with pytest.raises(BadInput, match="MasterVault takes a Secret") as info:
        MasterVault(given)  # pyright: ignore[reportArgumentType]
    assert "plain-text" not in str(info.value)
