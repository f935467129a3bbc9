"""An answer's token counts and times as OpenAI's and llama-server's clients read them."""

from bankml.engine.completion import GenerationStats, PromptProgress

Json = dict[str, object]


def usage(stats: GenerationStats) -> Json:
    """OpenAI's `usage`."""
    return {
        "completion_tokens": stats.completion_tokens,
        "prompt_tokens": stats.prompt_tokens,
        "total_tokens": stats.completion_tokens + stats.prompt_tokens,
        "prompt_tokens_details": {"cached_tokens": stats.cached_tokens},
    }


def timings(stats: GenerationStats) -> Json:
    """llama-server's `timings`, in milliseconds and tokens per second. A rate is null when its count or its time is 0.

    The generation's rate counts the forward passes that its time was spent on, one fewer than the tokens.
    """
    return {
        "cache_n": stats.cached_tokens,
        "prompt_n": stats.computed_tokens,
        "prompt_ms": round(stats.prompt_ms, 3),
        "prompt_per_second": _rate(stats.computed_tokens, stats.prompt_ms),
        "predicted_n": stats.completion_tokens,
        "predicted_ms": round(stats.predicted_ms, 3),
        "predicted_per_second": _rate(stats.decode_steps, stats.predicted_ms),
    }


def prompt_progress(progress: PromptProgress, seconds: float) -> Json:
    """llama-server's `prompt_progress`, so many seconds after computing the prompt began."""
    return {
        "total": progress.total,
        "cache": progress.cached,
        "processed": progress.processed,
        "time_ms": round(seconds * 1000),
    }


def _rate(count: int, ms: float) -> float | None:
    return count * 1000 / ms if count > 0 and ms > 0 else None
