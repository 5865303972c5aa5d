"""References to artifacts: what is one, and what is not."""

import json
from typing import Any

import pytest

from remit.core.artifact import Artifact, digest_of, digests_in, file_name, media_type, reference_in, references
from remit.core.values import checked
from remit.errors import BadInput

A, B = f"sha256:{'a' * 64}", f"sha256:{'0' * 64}"
REPORT = Artifact(A, 5, "report.txt", "text/plain")


def test_an_artifact_is_json_in_a_value_and_as_text():
    assert checked([REPORT], "a value") == [REPORT.data()]
    assert json.loads(str(REPORT)) == REPORT.data()
    assert Artifact(**json.loads(str(REPORT))) == REPORT
    assert Artifact(A, 0, "x").media_type == "application/octet-stream"


@pytest.mark.rule("artifact.name")
@pytest.mark.parametrize(
    "name", ["../x", "a/b", "a\\b", ".", "..", "", "a\nb", "a\0b", "x" * 201, "\u202egpj.exe", 5, None]
)
def test_a_name_that_is_more_than_a_file_name_is_refused(name: Any):
    with pytest.raises(BadInput):
        file_name(name)
    with pytest.raises(BadInput):
        Artifact(A, 5, name)


@pytest.mark.parametrize("name", ["report.pdf", ".profile", "Bericht für Ann.txt", "x" * 200, "..."])
def test_any_plain_file_name_is_taken(name: str):
    assert file_name(name) == name


@pytest.mark.parametrize("given", ["text", "text/", "/plain", "text/plain; charset=x", "a b/c", "", 5])
def test_a_media_type_has_two_parts(given: Any):
    with pytest.raises(BadInput):
        media_type(given)


@pytest.mark.parametrize("size", [-1, 1.5, True, "5", None, 2**63])
def test_a_size_is_a_number_of_bytes(size: Any):
    with pytest.raises(BadInput, match="a number of bytes"):
        Artifact(A, size, "x")


@pytest.mark.parametrize("given", [A, REPORT, REPORT.data()])
def test_a_digest_is_taken_from_whatever_names_an_artifact(given: object):
    assert digest_of(given) == A


@pytest.mark.parametrize("given", ["", "a" * 64, A.upper(), A + "0", f"{A}\n", {}, {"digest": 5}, None, 5, "../../x"])
def test_what_names_no_artifact_is_refused(given: object):
    with pytest.raises(BadInput, match="an artifact is what save"):
        digest_of(given)


def test_references_are_found_wherever_they_are_and_each_digest_once():
    other = Artifact(B, 0, "b")
    value: Any = {"x": [REPORT.data(), {"deep": [other.data()]}], "again": REPORT.data(), "n": 1, "t": str(other)}

    assert references(value) == [REPORT, other]
    assert references(REPORT.data()) == [REPORT]


@pytest.mark.parametrize(
    "value",
    [
        None,
        str(REPORT),
        {**REPORT.data(), "more": 1},
        {"digest": A},
        {**REPORT.data(), "digest": "sha256:short"},
        {**REPORT.data(), "digest": 5},
        {**REPORT.data(), "size": "5"},
        {**REPORT.data(), "name": "../x"},
    ],
)
def test_what_is_not_exactly_a_reference_is_none(value: Any):
    assert references(value) == []


def test_digests_are_found_in_text():
    assert digests_in(f"read {REPORT} and {B}, not sha256:12") == {A, B}
    assert digests_in("nothing here") == set()


@pytest.mark.rule("artifact.shown")
def test_a_reference_is_found_around_its_digest_in_a_text():
    file = Artifact(f"sha256:{'0' * 64}", 3, "a.png", "image/png")
    assert reference_in(f"see {file} there", file.digest) == file
    assert reference_in(f'> {{"photo":{file}}}', file.digest) == file
    assert reference_in(f"see {file.digest}", file.digest) is None
    assert reference_in(f"see {{ {file.digest} }}", file.digest) is None
    assert reference_in(f'{{"digest":"{file.digest}"}}', file.digest) is None
