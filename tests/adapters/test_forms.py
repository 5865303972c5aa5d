"""Forms of results: types by pydantic and JSON Schemas; what does not fit says where."""

import subprocess
import sys
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, ForwardRef, Literal, NotRequired, TypedDict

import pytest
from pydantic import BaseModel, ConfigDict, Field

from remit.adapters.forms import form_of
from remit.errors import BadInput


@dataclass
class Finding:
    line: int
    day: date = date(2026, 1, 2)


@dataclass
class Same:
    line: int


class Place(TypedDict):
    city: str


class Trip(TypedDict):
    to: Place
    by: NotRequired[Literal["train"]]


class Review(BaseModel):
    verdict: Literal["ship", "wait"]
    findings: list[Finding] = []


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)

    day: date
    number: int = Field(alias="lineNumber")


class Tagged(BaseModel):
    tags: set[str]


class Opaque(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)

    inside: object


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.mark.rule("form.types")
@pytest.mark.parametrize(
    ("form", "answer", "written", "read"),
    [
        (Finding, Finding(1), {"line": 1, "day": "2026-01-02"}, Finding(1)),
        (Finding, {"line": "1"}, {"line": 1, "day": "2026-01-02"}, Finding(1)),
        (Finding, Same(2), {"line": 2, "day": "2026-01-02"}, Finding(2)),
        (Finding, '{"line": 3}', {"line": 3, "day": "2026-01-02"}, Finding(3)),
        (list[Finding], [Finding(1), {"line": 2}], None, [Finding(1), Finding(2)]),
        (dict[str, Trip | None], {"a": {"to": {"city": "Bern"}}, "b": None}, None, None),
        (Review, Review(verdict="ship"), {"verdict": "ship", "findings": []}, Review(verdict="ship")),
        (Place, {"city": "Bern"}, {"city": "Bern"}, {"city": "Bern"}),
        (date, date(2026, 1, 2), "2026-01-02", date(2026, 1, 2)),
        (Literal["a", "b"], "a", "a", "a"),
        (Review | None, None, None, None),
        (int | None, 3, 3, 3),
        (str, '{"a": 1}', '{"a": 1}', '{"a": 1}'),
        (Strict, {"day": "2026-01-02", "lineNumber": 1}, {"day": "2026-01-02", "number": 1}, None),
        (Tagged, Tagged(tags={"a"}), {"tags": ["a"]}, Tagged(tags={"a"})),
        (Annotated[int, Field(gt=0, json_schema_extra={"a": []})], 3, 3, 3),
        (SCHEMA, {"n": 1}, {"n": 1}, {"n": 1}),
    ],
)
def test_an_answer_is_written_as_json_and_read_back_as_the_type(form: Any, answer: Any, written: Any, read: Any):
    made = form_of(form, "output")
    found = made.write(answer, "the result")

    assert written is None or found == written
    again = made.read(found, "the result")
    assert read is None or again == read
    assert made.write(again, "the result") == found


@pytest.mark.rule("form.types", "form.place")
@pytest.mark.parametrize(
    ("form", "answer", "sentence"),
    [
        (
            Review,
            {"verdict": "ship", "findings": [{"line": 1}, {"line": "x"}]},
            r"^the result does not fit Review: findings\[1\]\.line: Input should be a valid integer, .*, got 'x'$",
        ),
        (Review, {}, "^the result does not fit Review: verdict: Field required$"),
        (int, "many", "^the result does not fit int: Input should be a valid integer, .*, got 'many'$"),
        (Review, "{not json", "^the result does not fit Review: Invalid JSON: "),
        (list[int], ["a"] * 7, r"does not fit list\[int\]: \[0\]: .*; and 2 more$"),
        (Review | None, 5, r"does not fit .*Review"),
        (Place, {"town": "Bern"}, "^the result does not fit Place: city: Field required$"),
        (list[Trip], [{"to": {}}], r"^the result does not fit list\[.*Trip\]: \[0\]\.to\.city: Field required$"),
        (Finding, {"line": {1}}, "^the result does not fit Finding: line: "),
        (Opaque, Opaque(inside=object()), "^the result is a Opaque that cannot be written as JSON: "),
        (SCHEMA, {"n": "x"}, "^the result does not fit its schema: n: 'x' is not of type 'integer'$"),
    ],
)
def test_an_answer_that_does_not_fit_says_where(form: Any, answer: Any, sentence: str):
    with pytest.raises(BadInput, match=sentence):
        form_of(form, "output").write(answer, "the result")


@pytest.mark.rule("form.types")
@pytest.mark.parametrize("no_type", [5, "NoSuchType", object(), type("Plain", (), {}), list[ForwardRef("NoSuchType")]])
def test_what_is_no_type_is_refused_at_once(no_type: Any):
    with pytest.raises(BadInput, match="^returns takes a type, such as a dataclass"):
        form_of(no_type, "returns")


@pytest.mark.rule("form.types")
def test_without_the_package_the_error_says_what_to_install():
    program = """
import sys
sys.modules["pydantic"] = None
from remit.adapters.forms import form_of
form_of(int, "returns")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "BadInput: returns=int needs pydantic: pip install 'remit[typed]'" in done.stderr
    program = program.replace("pydantic", "jsonschema").replace("(int", "({}")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "BadInput: returns as a JSON Schema needs pip install 'remit[schema]'" in done.stderr
