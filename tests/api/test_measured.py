"""What is told of a running server, over real sockets: it agrees with the answers and their receipts."""

import json
import os
import socket
import threading

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_strictly
from prometheus_client.parser import text_string_to_metric_families as read

from bankml.api.routes import Serving, build_application
from bankml.library.load import LoadOptions
from tests.api.api_toys import CHAT, toy_application, toy_ollama, user
from tests.api.measured_house import House, paced_model
from tests.engine.engine_toys import hashing
from tests.tiny_model import tiny_model
from tests.upstream.front import STREAMED
from tests.upstream.front import House as FrontHouse


def samples(data, parse=read):
    """{name: value} of the samples without labels, and {(name, label, ...): value} of the others."""
    found = [sample for family in parse(data.decode()) for sample in family.samples]
    return {(one.name, *one.labels.values()) if one.labels else one.name: one.value for one in found}


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    """A house whose answers the native engine computes."""
    verified = tiny_model(tmp_path_factory.mktemp("model"))
    with House(build_application(verified, LoadOptions(512, 1), Serving())) as house:
        yield house, verified


def receipts(client, bodies):
    """The receipt and the timings of each answer, streamed or not."""
    for body in bodies:
        path = "/completion" if "prompt" in body else CHAT
        status, _, data = client.ask("POST", path, body)
        assert status == 200, data
        if body.get("stream"):
            events = [json.loads(line[6:]) for line in data.decode().split("\n") if line.startswith("data: {")]
            yield {name: value for event in events for name, value in event.items()}
        else:
            yield json.loads(data)


def test_the_numbers_are_those_of_the_receipts(native):
    house, verified = native
    bodies = [
        user("a b c", max_tokens=6, temperature=0),
        user("a b c d", max_tokens=5, temperature=0, stream=True),
        {"prompt": "a b c", "n_predict": 4, "temperature": 0},
        {"prompt": "a b", "n_predict": 8, "temperature": 0, "grammar": 'root ::= "zq" "x"*'},
    ]
    with house.client() as client:
        before, metrics = samples(client.ask("GET", "/metrics")[2]), client.get("/bankml/metrics")
        answers = list(receipts(client, bodies))
        after = samples(client.ask("GET", "/metrics")[2])
        told = client.get("/bankml/metrics")
    signed = [answer["bankml_receipt"] for answer in answers]
    records = told["completions"][len(metrics["completions"]) :]
    for name in ("prompt_tokens", "completion_tokens", "ttft_ms", "request_sha256", "response_sha256"):
        assert [record[name] for record in records] == [receipt[name] for receipt in signed], name
    for record, answer in zip(records, answers, strict=True):
        timings = answer["timings"]
        assert record["cached_tokens"] == timings["cache_n"] and record["model"] == "tiny"
        assert (record["prompt_ms"], record["eval_ms"]) == (timings["prompt_ms"], timings["predicted_ms"])
        for name in ("prompt_per_second", "predicted_per_second"):
            assert record[name] == timings[name]
    for name in ("prompt_tokens", "completion_tokens"):
        total = sum(receipt[name] for receipt in signed)
        assert told["totals"][name] - metrics["totals"][name] == total
        assert after[f"bankml_{name}_total"] - before[f"bankml_{name}_total"] == total
    grown = {name: after[name] - before.get(name, 0) for name in after}
    assert grown["bankml_completions_total"] == 4 == told["totals"]["completions"] - metrics["totals"]["completions"]
    assert grown["bankml_requests_total", CHAT, "200"] == grown["bankml_requests_total", "/completion", "200"] == 2
    assert grown["bankml_time_to_first_token_seconds_count"] == 4
    seconds = sum(receipt["ttft_ms"] for receipt in signed) / 1000
    assert grown["bankml_time_to_first_token_seconds_sum"] == pytest.approx(seconds)
    assert grown["bankml_cache_hits_total"] == sum(answer["timings"]["cache_n"] > 0 for answer in answers) > 0
    assert after["bankml_resident_model_bytes"] == verified.identity.size


def test_what_a_grammar_took_is_told_where_there_was_one(native):
    house, _ = native
    with house.client() as client:
        held = {"prompt": "a b", "n_predict": 8, "temperature": 0, "grammar": 'root ::= "zq" "x"*'}
        list(receipts(client, [held, held | {"grammar": ""}]))
        with_it, without = client.get("/bankml/metrics")["completions"][-2:]
        assert with_it["grammar_ms"] > 0 and with_it["resampled"] >= 1
        assert (without["grammar_ms"], without["resampled"]) == (None, None)
        assert with_it["energy_j"] is None or with_it["energy_j"] >= 0


def test_a_route_is_one_of_the_table_whatever_is_asked_for():
    with House() as house, house.client() as client, house.client("engine") as engine:
        for path in ("/secret/1", "/secret/2", "/metrics/x"):
            assert client.ask("GET", path)[0] == 404
        assert client.ask("DELETE", CHAT)[0] == 405
        engine.ask("GET", "/slots")
        engine.ask("POST", "/slots/7?action=save", {"filename": "x"})
        engine.ask("GET", "/metrics")  # llama-server's address; there it is not ours to answer
        data = client.ask("GET", "/metrics")[2]
        found = {name[1:]: value for name, value in samples(data).items() if name[0] == "bankml_requests_total"}
        assert found[("none", "404")] == 4 and found[(CHAT, "405")] == 1
        assert {route for route, _ in found} == {"none", CHAT, "/slots"}
        assert b"secret" not in data


def test_ollamas_answers_are_counted_under_their_own_paths():
    application, _ = toy_ollama()
    with House(application) as house, house.client() as client:
        body = {"model": "toy-1m-f16", "messages": [{"role": "user", "content": "hi"}], "stream": False}
        answer = json.loads(client.ask("POST", "/api/chat", body)[2])
        for path in ("/api/blobs/sha256:1", "/api/blobs/sha256:2", "/api/none", "/api/pull"):
            client.ask("POST", path, {})
        found = samples(client.ask("GET", "/metrics")[2])
        assert found["bankml_requests_total", "/api/chat", "200"] == 1
        assert sum(value for name, value in found.items() if name[1:2] == ("/api/blobs",)) == 2
        assert {name[1] for name in found if name[0] == "bankml_requests_total"} == {
            "/api/chat", "/api/blobs", "/api/pull", "none",
        }  # fmt: skip
        (record,) = client.get("/bankml/metrics")["completions"]
        assert record["response_sha256"] == answer["bankml_receipt"]["response_sha256"]
        assert record["completion_tokens"] == answer["eval_count"] == found["bankml_completion_tokens_total"]


def test_a_request_that_breaks_a_rule_of_the_wire_is_counted_by_its_status():
    with House() as house, house.client() as client:
        with socket.create_connection(house.listening.gateway) as stranger:
            stranger.sendall(b"GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n")
            while stranger.recv(4096):
                pass
        assert samples(client.ask("GET", "/metrics")[2])["bankml_refused_requests_total", "403"] == 1


@pytest.mark.parametrize("path", ["/bankml/metrics", "/bankml/usage", "/metrics", "/bankml/ui"])
def test_each_is_looked_at_and_not_changed(path):
    with House() as house, house.client() as client:
        status, headers, body = client.ask("GET", path)
        length = headers["content-length"]
        assert status == 200 and int(length) == len(body) > 0
        status, headers, body = client.ask("HEAD", path)
        assert status == 200 and body == b"" and int(headers["content-length"]) > 0
        status, headers, body = client.ask("POST", path, {})
        assert (status, headers["allow"]) == (405, "GET, HEAD")
        assert json.loads(body)["error"]["message"] == f"{path} answers GET and HEAD only"


def test_the_format_is_the_one_that_is_asked_for():
    with House() as house, house.client() as client:
        _, headers, body = client.ask("GET", "/metrics")
        assert headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8" and samples(body)
        _, headers, body = client.ask("GET", "/metrics", Accept="application/openmetrics-text;version=1.0.0,*/*;q=0.1")
        assert headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
        assert samples(body, read_strictly)["bankml_completions_total"] == 0


def test_an_answer_that_was_stopped_is_counted_and_has_no_hashes():
    with House(toy_application(hashing, model=paced_model(hashing, 0.01))) as house:
        body = json.dumps(user("hi", stream=True)).encode()
        with socket.create_connection(house.listening.gateway) as client:
            head = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            got = b""
            while b"data:" not in got:
                got += client.recv(4096)
        with house.client() as client:
            while not (records := client.get("/bankml/metrics")["completions"]):
                pass
            assert records[0]["finish"] == "cancelled" and records[0]["completion_tokens"] > 0
            assert records[0]["response_sha256"] is None
            counted = samples(client.ask("GET", "/metrics")[2])
            assert counted["bankml_completion_tokens_total"] == records[0]["completion_tokens"]
            assert counted["bankml_requests_total", CHAT, "499"] == 1


def test_who_waits_in_line_is_seen_and_pollers_do_not_wait_for_an_answer():
    going = threading.Event()
    model = paced_model(hashing, 0)
    model.before = lambda: going.wait(20)
    with House(toy_application(hashing, model=model)) as house, house.client() as looking:

        def ask():
            with house.client() as client:
                client.ask("POST", CHAT, user("hi", max_tokens=2))

        asking = [threading.Thread(target=ask) for _ in range(3)]
        for each in asking:
            each.start()
        while samples(looking.ask("GET", "/metrics")[2])["bankml_queue_length"] != 2:
            pass
        assert looking.get("/bankml/usage")["processes"][0]["name"] == "gateway"
        assert looking.get("/bankml/metrics")["completions"] == []
        going.set()
        for each in asking:
            each.join(20)
        assert samples(looking.ask("GET", "/metrics")[2])["bankml_queue_length"] == 0


def test_what_need_not_be_measured_first_is_told_on_the_event_loop():
    answered = []
    with House() as house, house.client() as client:
        answer = house.measured.answer
        house.measured.answer = lambda request, reply: answered.append(request.path) or answer(request, reply)
        paths = ["/bankml/metrics", "/metrics", "/bankml/ui", "/bankml/usage", "/bankml/usage", "/health"]
        told = [client.ask("GET", path)[2] for path in paths]
        assert answered == ["/bankml/usage", "/health"]
        assert told[3] == told[4]
        assert client.ask("POST", "/metrics", {})[0] == 405
        assert samples(client.ask("GET", "/metrics")[2])["bankml_requests_total", "/bankml/usage", "200"] == 2
        assert answered == ["/bankml/usage", "/health"]


def test_all_pollers_of_usage_get_the_same_look():
    with House() as house:
        got = []

        def poll():
            with house.client() as client:
                got.append(client.get("/bankml/usage"))

        polling = [threading.Thread(target=poll) for _ in range(20)]
        for each in polling:
            each.start()
        for each in polling:
            each.join(20)
        assert len(got) == 20 and len({usage["time"] for usage in got}) <= 2


def test_in_front_of_llama_server_tokens_are_counted_and_no_completion_is_measured(tmp_path):
    with FrontHouse(tmp_path / "m.gguf") as house:
        status, body = house.chat()
        assert status == 200
        receipt = json.loads(body)["bankml_receipt"]
        told = json.loads(house.ask("GET", "/bankml/metrics")[2])
        assert told["completions"] == [] and told["totals"]["completions"] == 0
        while not (found := samples(house.ask("GET", "/metrics")[2])).get(("bankml_requests_total", CHAT, "200")):
            pass
        assert found["bankml_completion_tokens_total"] == receipt["completion_tokens"] > 0
        assert found["bankml_prompt_tokens_total"] == receipt["prompt_tokens"]
        assert "bankml_queue_length" not in found and found["bankml_time_to_first_token_seconds_count"] == 0
        assert house.chat(STREAMED)[0] == 200  # of a stream the first token's time is known
        while samples(house.ask("GET", "/metrics")[2])["bankml_requests_total", CHAT, "200"] == 1:
            pass
        assert samples(house.ask("GET", "/metrics")[2])["bankml_time_to_first_token_seconds_count"] == 1
        assert house.ask("GET", "/bankml/ui")[0] == 200
        assert json.loads(house.ask("GET", "/bankml/usage")[2])["processes"]


def test_a_derived_model_is_recorded_under_its_own_name(tmp_path):
    verified = tiny_model(tmp_path)
    application = build_application(verified, LoadOptions(512, 1), Serving(registry=str(tmp_path)))
    with House(application) as house, house.client() as client:
        assert client.ask("POST", "/api/create", {"model": "poet", "from": "tiny", "system": "Rhyme."})[0] == 200
        for name in ("tiny", "poet"):
            assert client.ask("POST", CHAT, user("hi", model=name, max_tokens=2))[0] == 200
        assert [record["model"] for record in client.get("/bankml/metrics")["completions"]] == ["tiny", "poet"]


def test_whether_the_file_is_still_the_verified_one_is_looked_at_when_it_is_asked(tmp_path):
    verified = tiny_model(tmp_path)
    with House(build_application(verified, LoadOptions(512, 1), Serving())) as house, house.client() as client:
        assert client.get("/bankml")["unchanged"] is True
        os.utime(verified.path)
        assert client.get("/bankml")["unchanged"] is False
        assert client.ask("POST", CHAT, user("hi", max_tokens=2))[0] == 503
        client.ask("POST", "/api/generate", {"model": "tiny", "keep_alive": 0})
        told = client.get("/bankml")
        assert (told["resident"], told["unchanged"]) == (None, None)
