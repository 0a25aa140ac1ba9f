"""When a request is sent again, and what is said where no answer comes."""

from __future__ import annotations

import gzip
import json

import pytest

from icebench.engine.catalog.rest_http import Answer, AnswerLost, HttpClient, Secrets, Timeouts, Transport, Unreachable
from icebench.engine.commit.retry import Waiting
from icebench.errors import CorruptTable, Invalid, TooLarge
from tests.services.processes import free_port
from tests.services.scripted_http import Reply, Seen, scripted_server
from tests.unit.engine.catalog.rest_answers import Script


def client(address: str, slept: list[float] | None = None, secrets: Secrets | None = None) -> HttpClient:
    waiting = Waiting(sleep=(slept if slept is not None else []).append, monotonic=lambda: 0.0, random=lambda: 0.0)
    return HttpClient(
        address, transport=Transport(timeouts=Timeouts(read_seconds=0.3), retries=2), waiting=waiting, secrets=secrets
    )


def send(http: HttpClient, method: str = "GET", *, repeatable: bool = False) -> Answer:
    body = b"{}" if method == "POST" else None
    return http.send(method, f"{http.base}/x", headers={}, body=body, repeatable=repeatable)


@pytest.mark.parametrize("status", [502, 503, 504, 429])
def test_a_question_is_asked_again_when_the_server_is_busy(status: int) -> None:
    slept: list[float] = []
    with scripted_server(Script({"GET /x": [Reply(status=status), Reply(status=status), Reply(body="ok")]})) as server:
        assert send(client(server.address, slept)).body == b"ok"
        assert server.count("GET") == 3
    assert slept == [0.1, 0.2]


def test_a_server_may_say_how_long_to_wait() -> None:
    slept: list[float] = []
    replies = [Reply(status=503, headers={"Retry-After": "7"}), Reply(status=429, headers={"Retry-After": "9999"})]
    with scripted_server(Script({"GET /x": [*replies, Reply(body="ok")]})) as server:
        assert send(client(server.address, slept)).is_success
    assert slept == [7, 0.1, 30, 0.2]


def test_a_server_that_stays_busy_is_believed_in_the_end() -> None:
    with scripted_server(Script({"GET /x": [Reply(status=503)]})) as server:
        assert send(client(server.address)).status == 503
        assert server.count("GET") == 3


@pytest.mark.parametrize(
    "reply",
    [Reply(cut_at=-1), Reply(body="long enough", cut_at=3), Reply(body="x", after_seconds=0.8)],
    ids=["no-answer", "half-an-answer", "late"],
)
def test_only_a_question_is_asked_again_when_the_answer_is_lost(reply: Reply) -> None:
    with scripted_server(Script({"GET /x": [reply, Reply(body="ok")], "POST /x": [reply, Reply()]})) as server:
        http = client(server.address)
        assert send(http).body == b"ok"
        with pytest.raises(AnswerLost, match="POST http"):
            send(http, "POST")
        assert server.count("POST") == 1


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_change_is_not_sent_again_when_the_server_fails(status: int) -> None:
    with scripted_server(Script({"POST /x": [Reply(status=status), Reply()]})) as server:
        assert send(client(server.address), "POST").status == status
        assert server.count("POST") == 1


def test_a_change_that_is_carried_out_once_is_sent_again() -> None:
    with scripted_server(Script({"POST /x": [Reply(cut_at=-1), Reply(status=503), Reply(body="ok")]})) as server:
        assert send(client(server.address), "POST", repeatable=True).body == b"ok"
    # It may have been carried out when it arrived first.
    with scripted_server(Script({"POST /x": [Reply(cut_at=-1)]})) as server, pytest.raises(AnswerLost):
        send(client(server.address), "POST", repeatable=True)


@pytest.mark.parametrize("status", [200, 401, 403, 404, 409, 429])
@pytest.mark.parametrize("first", [Reply(cut_at=-1), Reply(status=503)], ids=["no-answer", "busy"])
def test_an_answer_says_whether_an_earlier_copy_may_have_been_carried_out(first: Reply, status: int) -> None:
    replies = [first, Reply(status=status)]
    with scripted_server(Script({"POST /x": [*replies], "GET /x": [*replies]})) as server:
        http = client(server.address)
        changed, asked = send(http, "POST", repeatable=True), send(http)
    assert changed.status == asked.status == status
    assert isinstance(changed.lost, AnswerLost)
    assert asked.lost is None
    # What was turned away every time was not carried out.
    with scripted_server(Script({"POST /x": [Reply(status=429), Reply(status=status)]})) as server:
        assert send(client(server.address), "POST", repeatable=True).lost is None


def test_what_was_never_sent_is_distinguished() -> None:
    slept: list[float] = []
    http = client(f"http://127.0.0.1:{free_port()}", slept)
    for method in ("GET", "POST"):
        with pytest.raises(Unreachable, match="refused"):
            send(http, method)
    # Sending it again does no harm.
    assert slept == [0.1, 0.2] * 2
    with pytest.raises(Unreachable, match="no-such-host"):
        send(client("http://no-such-host.invalid"), "POST")


def test_a_plain_server_is_not_taken_for_one_with_tls() -> None:
    with scripted_server(Script({})) as server, pytest.raises((Unreachable, AnswerLost)) as raised:
        send(client(server.address.replace("http:", "https:")), "POST")
    assert "SSL" in str(raised.value)


def test_redirects_are_not_followed() -> None:
    away = Reply(status=302, headers={"Location": "http://127.0.0.1:1/"})
    with scripted_server(Script({"GET /x": [away]})) as server:
        assert send(client(server.address)).status == 302


def test_secrets_stay_out_of_messages() -> None:
    secrets = Secrets(["keep-this"])
    http = client(f"http://127.0.0.1:{free_port()}", secrets=secrets)
    with pytest.raises(Unreachable) as raised:
        http.send("GET", f"{http.base}/x?key=keep-this", headers={})
    assert "keep-this" not in str(raised.value)
    assert "***" in str(raised.value)
    assert secrets.hidden("") == ""


@pytest.mark.parametrize("address", ["http://", "nothing", "https://host/path?query=1", "https://host/#part"])
def test_an_address_is_checked(address: str) -> None:
    with pytest.raises(Invalid, match="address"):
        HttpClient(address)


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(Invalid, match="token= or credential=") as raised:
        HttpClient("https://ann:hunter2@host/")
    assert "hunter2" not in str(raised.value)


def test_an_answer_that_is_no_json_says_whose_it_is() -> None:
    def answer(seen: Seen) -> Reply:
        return Reply(body="<html>")

    with scripted_server(answer) as server, pytest.raises(CorruptTable, match=server.address):
        send(client(server.address)).json()


class TestInflatedAnswers:
    """What is sent as gzip."""

    @staticmethod
    def reply(body: bytes, status: int = 200, **headers: str) -> Reply:
        return Reply(status=status, body=gzip.compress(body), headers={"Content-Encoding": "gzip", **headers})

    def test_a_whole_one(self) -> None:
        text = json.dumps({"name": "x" * 300_000}).encode()
        with scripted_server(Script({"GET /x": [self.reply(text)]})) as server:
            http = client(server.address)
            for _ in range(2):
                answer = send(http)
                assert (answer.body, answer.sent_bytes) == (text, len(gzip.compress(text)))
            assert answer.json().text("name") == "x" * 300_000

    @pytest.mark.parametrize("method", ["GET", "POST"])
    @pytest.mark.parametrize("status", [200, 500])
    def test_one_that_is_far_too_large(self, monkeypatch: pytest.MonkeyPatch, method: str, status: int) -> None:
        """A question is refused; whether a change was carried out is unknown."""
        monkeypatch.setenv("ICEBENCH_DECODE_BYTES", "3000000")
        script = Script({f"{method} /x": [self.reply(bytes(1_000_001), status), self.reply(b"{}")]})
        with scripted_server(script) as server:
            http = client(server.address)
            with pytest.raises(TooLarge if method == "GET" else AnswerLost, match="more than 1000000 bytes decoded"):
                send(http, method)
            assert server.count(method) == 1
            # The rest of it is not taken for the next answer.
            assert send(http, method).body == b"{}"

    def test_one_at_the_limit_and_a_plain_one_of_any_size(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ICEBENCH_DECODE_BYTES", "3000000")
        large = Reply(body=b"x" * 2_000_000)
        with scripted_server(Script({"GET /x": [self.reply(bytes(1_000_000)), large]})) as server:
            http = client(server.address)
            assert [len(send(http).body) for _ in range(2)] == [1_000_000, 2_000_000]

    def test_one_whose_values_take_too_much(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ICEBENCH_DECODE_BYTES", "60000000")
        # As a plain answer of 17 MB it might take ten times as much.
        text = b'{"a":["' + b"x" * 17_000_000 + b'"' + b",{}" * 60_000 + b"]}"
        with scripted_server(Script({"GET /x": [self.reply(text)]})) as server:
            answer = send(client(server.address))
        with pytest.raises(TooLarge, match="JSON of"):
            answer.json()

    def test_gzip_that_is_broken_is_an_answer_that_is_lost(self) -> None:
        broken = Reply(body=gzip.compress(bytes(100))[:-9] + bytes(9), headers={"Content-Encoding": "gzip"})
        with scripted_server(Script({"POST /x": [broken]})) as server, pytest.raises(AnswerLost):
            send(client(server.address), "POST")
