"""Trying again: which errors may go better, by type and status, and how long to wait before."""

import errno
import http.client
import socket
import ssl
import urllib.error
from datetime import timedelta
from email.message import Message

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.make import NOW, SECOND
from remit.core.backoff import ATTEMPTS, RetryPolicy, delay, retryable, wanted_wait
from remit.errors import BadInput, Cancelled, Conflict, Failed, Refused, StoreError, TimedOut

AGAIN = (408, 409, 425, 429, 500, 502, 503, 504, 529, 599)
NEVER = (100, 200, 301, 400, 401, 402, 403, 404, 405, 410, 413, 422, 451, 499)
PLACES = ("status_code", "status")


class Answer:
    """What client libraries put behind `response`."""

    def __init__(self, **figures: object) -> None:
        self.__dict__.update(figures)


class ClientError(Exception):
    """An error of a client library, with the attributes it is given."""

    def __init__(self, text: str = "no", **attributes: object) -> None:
        super().__init__(text)
        self.__dict__.update(attributes)


def defined(module: str, name: str, *bases: type) -> type[Exception]:
    """An error class as a library defines it, without the library."""
    return type(name, bases or (Exception,), {"__module__": module})


@pytest.mark.rule("retry.which")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("status", "again"), [*((one, True) for one in AGAIN), *((one, False) for one in NEVER)])
def test_a_status_decides_wherever_the_library_puts_it(status, again, place):
    assert retryable(ClientError(**{place: status})) is again
    assert retryable(ClientError(response=Answer(**{place: status}))) is again


@pytest.mark.rule("retry.which")
@pytest.mark.parametrize("text", ["404 not found: order 5003", "HTTP 503", "timeout", "Connection reset", "429 429"])
def test_words_never_decide(text):
    assert not retryable(ClientError(text))
    assert not retryable(ClientError(text, status_code=404))
    assert not retryable(ValueError(text))


@pytest.mark.rule("retry.which")
@pytest.mark.parametrize(
    ("error", "again"),
    [
        (ConnectionError("reset"), True),
        (ConnectionResetError(), True),
        (ConnectionRefusedError(), True),
        (BrokenPipeError(), True),
        (TimeoutError(), True),
        (OSError("no disk"), False),
        (FileNotFoundError(), False),
        (ValueError("5003"), False),
        (KeyError(500), False),
        (AssertionError(), False),
        (MemoryError(), False),
    ],
)
def test_errors_of_the_network_and_of_time_may_go_better(error, again):
    assert retryable(error) is again


@pytest.mark.rule("retry.which")
@pytest.mark.parametrize(
    ("error", "again"),
    [
        (BadInput("x"), False),
        (Conflict("x"), True),
        (StoreError("x"), False),
        (Refused("x", rule="loop"), False),
        (Failed("x", agent="a", task="t"), False),
        (Failed("x", agent="a", task="t", retryable=True), True),
        (TimedOut("x", agent="a", task="t", retryable=False), False),
        (TimedOut("x", agent="a", task="t", retryable=True), True),
        (Cancelled("x", agent="a", task="t"), False),
    ],
)
def test_our_own_errors_say_it_themselves(error, again):
    assert retryable(error) is again


@pytest.mark.rule("retry.which")
def test_what_our_own_errors_say_goes_before_their_status():
    error = Failed("x", agent="a", task="t", retryable=False)
    error.status_code = 503  # pyright: ignore[reportAttributeAccessIssue]

    assert error.status == 502
    assert not retryable(error)


@pytest.mark.rule("retry.which")
@pytest.mark.parametrize(
    ("module", "name", "again"),
    [
        ("httpx", "TransportError", True),
        ("httpx._exceptions", "TransportError", True),
        ("openai", "APIConnectionError", True),
        ("anthropic._exceptions", "APIConnectionError", True),
        ("psycopg", "OperationalError", True),
        ("requests.exceptions", "Timeout", True),
        ("aiohttp.client_exceptions", "ClientConnectionError", True),
        ("httpx2", "TransportError", True),
        ("httpcore2", "NetworkError", True),
        ("pydantic_ai.exceptions", "ModelConnectionError", True),
        ("pydantic_ai.exceptions", "ModelRequestTimeout", True),
        ("pydantic_ai.exceptions", "ModelQuotaExceededError", False),
        ("pydantic_ai.exceptions", "ModelAPIError", False),
        ("httpx", "InvalidURL", False),
        ("mine.httpx", "TransportError", False),
        ("mine", "APIConnectionError", False),
    ],
)
def test_network_errors_of_client_libraries_are_known_by_where_they_are_defined(module, name, again):
    kind = defined(module, name)
    below = defined("elsewhere", "Narrower", kind)

    assert retryable(kind()) is again
    assert retryable(below()) is again


@pytest.mark.rule("retry.which")
@pytest.mark.parametrize("status", [True, "503", None, 0, 99, 600, 5003, 50.3])
def test_what_is_no_status_is_not_taken_for_one(status):
    assert not retryable(ClientError(status_code=status))
    assert retryable(ClientError(status_code=status, status=503))


@pytest.mark.rule("retry.which")
def test_an_account_without_money_is_no_rate_limit():
    quota = defined("pydantic_ai.exceptions", "ModelQuotaExceededError", ClientError)

    assert not retryable(quota("no", status_code=429))  # pyright: ignore[reportCallIssue]
    assert not retryable(ClientError(status_code=429, code="insufficient_quota"))
    assert retryable(ClientError(status_code=429, code="rate_limit_exceeded"))
    assert retryable(ClientError(status_code=429, code=7))


@pytest.mark.rule("retry.which")
def test_a_code_is_no_status():
    assert not retryable(ClientError(code=503))
    assert not retryable(SystemExit(503))


@pytest.mark.rule("retry.which")
def test_a_status_goes_before_the_type():
    assert not retryable(type("Strange", (ConnectionError,), {"status_code": 404})())


@pytest.mark.rule("retry.delays")
@pytest.mark.parametrize(("tries", "seconds"), [(0, 1), (1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (10**6, 10)])
def test_the_delays_double_up_to_ten_seconds(tries, seconds):
    assert delay(tries, 0) == seconds * SECOND
    assert delay(tries, 1) == seconds * SECOND * 6 // 5


@pytest.mark.rule("retry.delays")
@given(st.integers(0, 100), st.floats(0, 1))
def test_chance_adds_up_to_a_fifth_and_never_takes_away(tries, chance):
    plain = delay(tries, 0)

    assert isinstance(delay(tries, chance), int)
    assert plain <= delay(tries, chance) <= plain * 6 // 5


def test_a_task_has_four_attempts_by_default():
    assert ATTEMPTS == 4


# -- of the network -----------------------------------------------------------------------------------------------


@pytest.mark.rule("retry.which")
@pytest.mark.parametrize(
    ("error", "again"),
    [
        (socket.gaierror(-3, "temporary failure in name resolution"), True),
        (OSError(errno.ENETUNREACH, "unreachable"), True),
        (OSError(errno.EHOSTUNREACH, "no route"), True),
        (OSError(errno.ETIMEDOUT, "timed out"), True),
        (OSError(errno.ENOSPC, "no space"), False),
        (OSError(errno.EACCES, "no"), False),
        (urllib.error.URLError(ConnectionRefusedError()), True),
        (urllib.error.URLError(socket.gaierror(-2, "unknown")), True),
        (urllib.error.URLError(ssl.SSLCertVerificationError(1, "expired")), False),
        (urllib.error.URLError("unknown url type"), False),
        (urllib.error.HTTPError("http://x", 503, "busy", Message(), None), True),
        (urllib.error.HTTPError("http://x", 404, "503", Message(), None), False),
        (http.client.IncompleteRead(b"half"), True),
        (http.client.RemoteDisconnected("gone"), True),
        (http.client.InvalidURL("x"), False),
        (ssl.SSLEOFError(8, "EOF"), True),
        (ssl.SSLZeroReturnError(6, "closed"), True),
        (ssl.SSLCertVerificationError(1, "expired"), False),
        (ssl.SSLError(1, "wrong version"), False),
        (ExceptionGroup("all", [ConnectionError(), ExceptionGroup("in", [TimeoutError()])]), True),
        (ExceptionGroup("some", [ConnectionError(), ValueError()]), False),
        (BaseExceptionGroup("exit", [SystemExit(503)]), False),
        (SystemExit(503), False),
    ],
)
def test_what_passes_by_itself_is_known_by_its_type(error, again):
    assert retryable(error) is again


@pytest.mark.rule("retry.which")
def test_an_error_whose_attributes_cannot_be_read_is_judged_without_them():
    class Hostile(ConnectionError):
        @property
        def status_code(self) -> int:
            raise RuntimeError("no")

        headers = property(lambda self: 1 / 0)

    assert retryable(Hostile())
    assert wanted_wait(Hostile(), NOW) == 0


class Headers:
    """Headers as most clients have them, or broken."""

    def __init__(self, value: object) -> None:
        self.value = value

    def get(self, name: str) -> object:
        if self.value == "raises":
            raise KeyError(name)
        return self.value if name.lower() == "retry-after" else None


@pytest.mark.rule("retry.after")
@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("7", 7),
        (" 2.5 ", 2.5),
        (7, 7),
        (timedelta(seconds=30), 30),
        ("0", 0),
        ("86400", 600),
        ("Tue, 14 Nov 2023 22:13:50 GMT", 30),
        ("Tue, 14 Nov 2023 22:00:00 GMT", 0),
        ("soon", 0),
        ("-5", 0),
        ("nan", 0),
        ("inf", 0),
        (True, 0),
        (None, 0),
        ("raises", 0),
    ],
)
def test_how_long_a_server_wants_to_be_left_alone_is_read_wherever_it_stands(said, seconds):
    wanted = round(seconds * SECOND)
    assert wanted_wait(ClientError(response=Answer(headers=Headers(said))), NOW) == wanted
    assert wanted_wait(ClientError(headers=Headers(said)), NOW) == wanted
    if said != "raises":
        assert wanted_wait(ClientError(retry_after=said), NOW) == wanted
    group = ExceptionGroup("two", [ValueError(), ClientError(headers=Headers(said))])
    assert wanted_wait(group, NOW) == wanted


@pytest.mark.rule("retry.after")
def test_a_server_may_ask_for_as_long_a_pause_as_the_policy_makes():
    patient = RetryPolicy(cap=86_400)
    for said, seconds in ((7, 7), (7_200, 7_200), (10**6, 86_400)):
        assert wanted_wait(ClientError(retry_after=said), NOW, patient) == seconds * SECOND
        group = ExceptionGroup("one", [ClientError(retry_after=said)])
        assert wanted_wait(group, NOW, patient) == seconds * SECOND
    assert wanted_wait(ClientError(retry_after=7_200), NOW, RetryPolicy(cap=1)) == 600 * SECOND


@pytest.mark.rule("retry.policy")
def test_pauses_double_up_to_the_cap_however_far_it_is():
    policy = RetryPolicy(attempts=1_000, first=1, cap=86_400)
    assert [delay(tries, 0, policy) // SECOND for tries in (11, 12, 17, 18, 19, 999)] == [
        1_024,
        2_048,
        65_536,
        86_400,
        86_400,
        86_400,
    ]


@pytest.mark.rule("retry.policy")
def test_a_policy_says_how_often_and_how_long():
    policy = RetryPolicy(attempts=9, first=0.5, cap=3)

    assert [delay(tries, 0, policy) for tries in range(1, 6)] == [500_000, SECOND, 2 * SECOND, 3 * SECOND, 3 * SECOND]


@pytest.mark.rule("retry.policy")
@pytest.mark.parametrize("wrong", [{"attempts": 0}, {"attempts": True}, {"first": 0}, {"cap": -1}, {"attempts": 10**6}])
def test_a_policy_that_cannot_be_meant_is_refused(wrong):
    with pytest.raises(BadInput):
        RetryPolicy(**wrong)
