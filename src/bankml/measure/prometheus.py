"""The metrics of `GET /metrics`, rendered on request."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from bankml import __version__
from bankml.measure.completions import Totals
from bankml.measure.counters import Distribution, MetricCounts
from bankml.measure.exposition import END, Family, counter, gauge, histogram, info, written


@dataclass(frozen=True)
class ServerState:
    """The current state of a server, for gauges. None: it has no such value.

    `waiting` requests are queued for the model, `processing` are being answered. `model_bytes` is the size
    of the loaded model's file, 0 when none is loaded; `cache_bytes` the size of its prompt cache; `kv_bytes` that of
    the keys and values in its slots; `decode_steps` how many steps computed so many answers together since the model
    was loaded.
    """

    engine: str
    waiting: int | None = None
    processing: int | None = None
    model_bytes: int | None = None
    cache_bytes: int | None = None
    kv_bytes: int | None = None
    decode_steps: Mapping[int, int] | None = None


def exposition(counts: MetricCounts, state: ServerState, openmetrics: bool = False) -> bytes:
    """The text of all families."""
    answers = _answers(counts.totals, counts.ttft_seconds, counts.prompt_rate, counts.predicted_rate, openmetrics)
    now = written([*_state(state), *_llama_server(counts.totals, state), *_process()], openmetrics)
    return written(_requests(counts), openmetrics) + answers + now + (END if openmetrics else b"")


def _requests(counts: MetricCounts) -> list[Family]:
    answers = sorted(counts.requests.items())
    return [
        counter(
            "bankml_requests",
            "Requests answered, by route and status; 499 is a client that hung up.",
            *((count, (("route", route), ("status", str(status)))) for (route, status), count in answers),
        ),
        counter(
            "bankml_refused_requests",
            "Requests that broke a rule of the wire, by status.",
            *((count, (("status", str(status)),)) for status, count in sorted(counts.refused.items())),
        ),
    ]


@lru_cache(maxsize=2)
def _answers(
    totals: Totals,
    ttft_seconds: Distribution,
    prompt_rate: Distribution,
    predicted_rate: Distribution,
    openmetrics: bool,
) -> bytes:
    """Most of the text; cached until the next completion."""
    sums: Mapping[str, tuple[str, int]] = {
        "bankml_completions": ("Responses that tokens were computed for, complete or interrupted.", totals.completions),
        "bankml_cache_hits": ("Completions that found some of their prompt in a cache.", totals.cache_hits),
        "bankml_prompt_tokens": ("Tokens of prompts, those found in a cache included.", totals.prompt_tokens),
        "bankml_cached_tokens": ("Tokens of prompts that were found in a cache.", totals.cached_tokens),
        "bankml_completion_tokens": ("Tokens generated.", totals.completion_tokens),
        "bankml_resampled_tokens": ("Tokens that broke a grammar and were drawn again.", totals.resampled or 0),
    }
    families = [counter(name, help_, (value, ())) for name, (help_, value) in sums.items()]
    if totals.energy_j is not None:
        help_ = "What the processor's packages used while completions were computed."
        families.append(counter("bankml_completions_energy_joules", help_, (totals.energy_j, ()), unit="joules"))
    families += [
        histogram(
            "bankml_time_to_first_token_seconds",
            "From a request's first byte to its answer's first token.",
            ttft_seconds,
            unit="seconds",
        ),
        histogram("bankml_prompt_tokens_per_second", "Prompt tokens computed in a second, by completion.", prompt_rate),
        histogram("bankml_generated_tokens_per_second", "Tokens generated in a second, by completion.", predicted_rate),
    ]
    return written(families, openmetrics)


def _state(state: ServerState) -> list[Family]:
    gauges = (
        ("bankml_queue_length", "Requests that wait until they may use the model.", state.waiting, ""),
        ("bankml_running_requests", "Requests that use the model.", state.processing, ""),
        ("bankml_resident_model_bytes", "Size of the resident model's file.", state.model_bytes, "bytes"),
        ("bankml_prompt_cache_bytes", "What other conversations left in memory.", state.cache_bytes, "bytes"),
        ("bankml_kv_bytes", "Keys and values in slots, and reserved for their answers.", state.kv_bytes, "bytes"),
    )
    return [
        info("bankml_build", "What answers here.", (("version", __version__), ("engine", state.engine))),
        *(gauge(name, help_, value, unit) for name, help_, value, unit in gauges if value is not None),
        *_decode_steps(state.decode_steps),
    ]


def _decode_steps(steps: Mapping[int, int] | None) -> list[Family]:
    if steps is None:
        return []
    samples = [(count, (("answers", str(answers)),)) for answers, count in sorted(steps.items())]
    return [counter("bankml_decode_steps", "Decode steps of the loaded model, by answers computed together.", *samples)]


def _llama_server(totals: Totals, state: ServerState) -> list[Family]:
    """llama-server's own metrics, for dashboards made for it: those of its `/metrics` that have a value here."""
    computed = totals.prompt_tokens - totals.cached_tokens
    prompt_s, eval_s = (totals.prompt_ms or 0) / 1000, (totals.eval_ms or 0) / 1000
    counters = (
        ("prompt_tokens", "Prompt tokens computed, without those found in a cache.", computed),
        ("prompt_tokens_cached", "Prompt tokens found in a cache.", totals.cached_tokens),
        ("prompt_seconds", "Time spent on prompts.", prompt_s),
        ("tokens_predicted", "Tokens generated.", totals.completion_tokens),
        ("tokens_predicted_seconds", "Time spent generating tokens.", eval_s),
    )
    gauges = (
        (
            "prompt_tokens_seconds",
            "Mean rate of prompts, in tokens/s.",
            computed / prompt_s if prompt_s else 0,
        ),
        ("predicted_tokens_seconds", "Mean rate of generation.", totals.completion_tokens / eval_s if eval_s else 0),
        ("requests_processing", "Requests being answered.", state.processing),
        ("requests_deferred", "Requests that wait for the model.", state.waiting),
    )
    return [
        *(counter(f"llamacpp:{name}", help_, (value, ())) for name, help_, value in counters),
        *(gauge(f"llamacpp:{name}", help_, value) for name, help_, value in gauges if value is not None),
    ]


def _process() -> list[Family]:
    """The two process metrics that every Prometheus client exports, by their usual names."""
    cpu = counter("process_cpu_seconds", "Processor time of this process.", (time.process_time(), ()), unit="seconds")
    try:
        with open("/proc/self/statm", "rb", buffering=0) as statm:
            resident = int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return [cpu]
    return [cpu, gauge("process_resident_memory_bytes", "Resident memory of this process.", resident, "bytes")]
