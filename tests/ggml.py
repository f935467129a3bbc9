"""The reference build's own arithmetic through ctypes: one ggml operation at a time, on numpy arrays.

For tests marked `oracle`.
"""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import POINTER, c_bool, c_double, c_float, c_int, c_int64, c_size_t, c_void_p
from functools import cache

import numpy as np

from tests import oracle

F32, F16, I32, Q8_0 = 0, 1, 26, 8
HADAMARD = 1  # GGML_HINT_SRC0_IS_HADAMARD
NORMAL, NEOX = 0, 2


class _InitParams(ctypes.Structure):
    _fields_ = (("mem_size", c_size_t), ("mem_buffer", c_void_p), ("no_alloc", c_bool))


@cache
def library(name: str) -> ctypes.CDLL:
    return ctypes.CDLL(str(oracle.find(f"lib{name}.so")))


class Ggml:
    """A context of ggml's; each method computes one operation and gives its result as an array."""

    def __init__(self, threads: int = 2, memory: int = 256 << 20) -> None:
        self.base, self.cpu, self.threads = library("ggml-base"), library("ggml-cpu"), threads
        for name in (
            "new_tensor_2d",
            "new_tensor_3d",
            "mul_mat",
            "rms_norm",
            "norm",
            "mul",
            "add",
            "gelu",
            "tanh",
            "soft_max",
            "rope_ext",
            "swiglu_split",
            "geglu_split",
            "flash_attn_ext",
        ):
            getattr(self.base, f"ggml_{name}").restype = c_void_p
        self.base.ggml_init.restype = c_void_p
        self.base.ggml_init.argtypes = [_InitParams]
        self.base.ggml_get_data.restype = c_void_p
        self.base.ggml_get_data.argtypes = [c_void_p]
        self.base.ggml_new_graph.restype = c_void_p
        self.base.ggml_nelements.restype = c_int64
        self.cpu.ggml_cpu_init()
        self._context = c_void_p(self.base.ggml_init(_InitParams(memory, None, False)))

    def close(self) -> None:
        self.base.ggml_free(self._context)

    def tensor(self, kind: int, array: np.ndarray, shape: tuple[int, ...] | None = None) -> c_void_p:
        """A tensor of the array's bytes; `shape` (row length first) where a row is not one array row."""
        extents = shape or tuple(reversed(array.shape))
        extents = extents + (1,) * (3 - len(extents))
        t = c_void_p(self.base.ggml_new_tensor_3d(self._context, c_int(kind), *(c_int64(e) for e in extents)))
        array = np.ascontiguousarray(array)
        ctypes.memmove(self.base.ggml_get_data(t), array.ctypes.data, array.nbytes)
        return t

    def _run(self, tensor: int | None) -> Callable[[], None]:
        """Computes `tensor` each time it is called."""
        graph = c_void_p(self.base.ggml_new_graph(self._context))
        self.base.ggml_build_forward_expand(graph, c_void_p(tensor))

        def compute() -> None:
            assert self.cpu.ggml_graph_compute_with_ctx(self._context, graph, c_int(self.threads)) == 0

        return compute

    def _read(self, tensor: int | None, shape: tuple[int, ...]) -> np.ndarray:
        data = ctypes.cast(self.base.ggml_get_data(c_void_p(tensor)), POINTER(c_float * int(np.prod(shape)))).contents
        return np.frombuffer(data, np.float32).reshape(shape).copy()

    def _compute(self, tensor: int | None, shape: tuple[int, ...]) -> np.ndarray:
        self._run(tensor)()
        return self._read(tensor, shape)

    def prepared_mul_mat(
        self, kind: int, weights: np.ndarray, rows: int, columns: int, x: np.ndarray
    ) -> tuple[Callable[[], None], Callable[[], np.ndarray]]:
        """mul_mat to be run many times: what computes it, and what reads its result."""
        product = self.base.ggml_mul_mat(
            self._context, self.tensor(kind, weights, (columns, rows)), self.tensor(F32, x)
        )
        return self._run(product), lambda: self._read(product, (x.shape[0], rows))

    def mul_mat(self, kind: int, weights: np.ndarray, rows: int, columns: int, x: np.ndarray) -> np.ndarray:
        """x [n, columns] float32 -> [n, rows]."""
        w = self.tensor(kind, weights, (columns, rows))
        return self._compute(self.base.ggml_mul_mat(self._context, w, self.tensor(F32, x)), (x.shape[0], rows))

    def rms_norm(self, x: np.ndarray, weight: np.ndarray, eps: float) -> np.ndarray:
        normed = c_void_p(self.base.ggml_rms_norm(self._context, self.tensor(F32, x), c_float(eps)))
        return self._compute(self.base.ggml_mul(self._context, normed, self.tensor(F32, weight)), x.shape)

    def layer_norm(self, x: np.ndarray, weight: np.ndarray, bias: np.ndarray, eps: float) -> np.ndarray:
        normed = c_void_p(self.base.ggml_norm(self._context, self.tensor(F32, x), c_float(eps)))
        weighted = c_void_p(self.base.ggml_mul(self._context, normed, self.tensor(F32, weight)))
        return self._compute(self.base.ggml_add(self._context, weighted, self.tensor(F32, bias)), x.shape)

    def unary(self, operation: str, x: np.ndarray) -> np.ndarray:
        """`operation` is gelu, tanh or soft_max."""
        function = getattr(self.base, f"ggml_{operation}")
        return self._compute(function(self._context, self.tensor(F32, x)), x.shape)

    def swiglu(self, gate: np.ndarray, up: np.ndarray) -> np.ndarray:
        return self._compute(
            self.base.ggml_swiglu_split(self._context, self.tensor(F32, gate), self.tensor(F32, up)), gate.shape
        )

    def geglu(self, gate: np.ndarray, up: np.ndarray) -> np.ndarray:
        return self._compute(
            self.base.ggml_geglu_split(self._context, self.tensor(F32, gate), self.tensor(F32, up)), gate.shape
        )

    def rope(
        self,
        x: np.ndarray,
        positions: np.ndarray,
        mode: int,
        base: float,
        yarn: tuple[int, float, float] | None,
        factors: np.ndarray | None = None,
        betas: tuple[float, float] = (32.0, 1.0),
    ) -> np.ndarray:
        """x [n, heads, head_size]; yarn: (original context, frequency scale, attention factor)."""
        original, scale, magnitude = yarn or (2048, 1.0, 1.0)
        divisors = None if factors is None else self.tensor(F32, factors)
        return self._compute(
            self.base.ggml_rope_ext(
                self._context, self.tensor(F32, x), self.tensor(I32, positions.astype(np.int32)), divisors,
                c_int(x.shape[2]), c_int(mode), c_int(original), c_float(base), c_float(scale),
                c_float(1.0 if yarn else 0.0), c_float(magnitude), *(c_float(beta) for beta in betas),
            ),
            x.shape,
        )  # fmt: skip

    def attention(
        self, q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray, scale: float, softcap: float = 0.0
    ) -> np.ndarray:
        """q float32 [heads, n, d], k and v uint16 [kv_heads, cells, d], mask uint16 [n, cells] -> [n, heads, d]."""
        return self._compute(
            self.base.ggml_flash_attn_ext(
                self._context, self.tensor(F32, q), self.tensor(F16, k), self.tensor(F16, v), self.tensor(F16, mask),
                c_float(scale), c_float(0.0), c_float(softcap),
            ),
            (q.shape[1], q.shape[0], q.shape[2]),
        )  # fmt: skip

    def attention_q8(self, q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray, scale: float) -> np.ndarray:
        """As `attention`, k and v uint8 [kv_heads, cells, d / 32 * 34], blocks of q8_0."""
        extents = (q.shape[2], k.shape[1], k.shape[0])
        return self._compute(
            self.base.ggml_flash_attn_ext(
                self._context, self.tensor(F32, q), self.tensor(Q8_0, k, extents), self.tensor(Q8_0, v, extents),
                self.tensor(F16, mask), c_float(scale), c_float(0.0), c_float(0.0),
            ),
            (q.shape[1], q.shape[0], q.shape[2]),
        )  # fmt: skip

    def hadamard(self, x: np.ndarray) -> np.ndarray:
        """x [n, a power of two] float32, each row turned; as llama.cpp's graph asks for it, by a hint at a product."""
        width = x.shape[1]
        matrix = self.tensor(F32, np.zeros((width, width), np.float32))
        product = c_void_p(self.base.ggml_mul_mat(self._context, matrix, self.tensor(F32, x)))
        self.base.ggml_mul_mat_set_hint(product, c_int(HADAMARD))
        return self._compute(product.value, x.shape)


REPACKED = (2, 12, 20, 39)  # Q4_0, Q4_K, IQ4_NL, MXFP4: the types of which llama.cpp repacks rows of eight


class Backend:
    """Products as llama.cpp computes a model's: with the weights in the buffer that its loader would choose."""

    def __init__(self, threads: int = 2) -> None:
        self._ggml = Ggml(threads, 1 << 20)
        base, cpu = self._ggml.base, self._ggml.cpu
        for name in ("ggml_get_rows", "ggml_backend_alloc_ctx_tensors_from_buft", "ggml_backend_cpu_buffer_type",
                     "ggml_backend_get_device", "ggml_backend_reg_get_proc_address"):  # fmt: skip
            getattr(base, name).restype = c_void_p
        cpu.ggml_backend_cpu_init.restype = cpu.ggml_backend_cpu_reg.restype = c_void_p
        self._backend = c_void_p(cpu.ggml_backend_cpu_init())
        cpu.ggml_backend_cpu_set_n_threads(self._backend, c_int(threads))
        self._plain = c_void_p(base.ggml_backend_cpu_buffer_type())
        found = base.ggml_backend_reg_get_proc_address(
            c_void_p(cpu.ggml_backend_cpu_reg()), b"ggml_backend_dev_get_extra_bufts"
        )
        extra = ctypes.CFUNCTYPE(POINTER(c_void_p), c_void_p)(found)
        self._packing = c_void_p(extra(c_void_p(base.ggml_backend_get_device(self._backend)))[0])

    def mul_mat(self, kind: int, weights: np.ndarray, x: np.ndarray) -> np.ndarray:
        """weights uint8 [rows, bytes of a row], x float32 [n, columns] -> [n, rows]."""
        with self.prepared_mul_mat(kind, weights, x) as (compute, result):
            compute()
            return result()

    @contextmanager
    def prepared_mul_mat(
        self, kind: int, weights: np.ndarray, x: np.ndarray
    ) -> Iterator[tuple[Callable[[], None], Callable[[], np.ndarray]]]:
        """mul_mat to be run many times: what computes it, and what reads its result."""
        rows, (n, columns) = len(weights), x.shape
        packed = kind in REPACKED and rows % 8 == 0
        with self._prepared("mul_mat", (kind, (columns, rows), weights, packed), (F32, (columns, n), x)) as run:
            yield run[0], lambda: run[1]((n, rows))

    def get_rows(self, kind: int, weights: np.ndarray, columns: int) -> np.ndarray:
        """Every row of the weights, dequantized: [rows, columns]."""
        rows = len(weights)
        numbers = (I32, (rows, 1), np.arange(rows, dtype=np.int32))
        with self._prepared("get_rows", (kind, (columns, rows), weights, False), numbers) as (compute, result):
            compute()
            return result((rows, columns))

    @contextmanager
    def _prepared(
        self,
        operation: str,
        weights: tuple[int, tuple[int, int], np.ndarray, bool],
        other: tuple[int, tuple[int, int], np.ndarray],
    ) -> Iterator[tuple[Callable[[], None], Callable[[tuple[int, int]], np.ndarray]]]:
        """weights: type, extents, bytes, whether they are repacked; other: type, extents, values."""
        base = self._ggml.base
        contexts = [c_void_p(base.ggml_init(_InitParams(1 << 20, None, True))) for _ in range(2)]
        tensors = [
            c_void_p(base.ggml_new_tensor_2d(context, c_int(one[0]), *(c_int64(e) for e in one[1])))
            for context, one in zip(contexts, (weights, other), strict=True)
        ]
        y = c_void_p(getattr(base, f"ggml_{operation}")(contexts[1], *tensors))
        graph = c_void_p(base.ggml_new_graph(contexts[1]))
        base.ggml_build_forward_expand(graph, y)
        kinds = (self._packing if weights[3] else self._plain, self._plain)
        buffers = [
            c_void_p(base.ggml_backend_alloc_ctx_tensors_from_buft(context, buffer))
            for context, buffer in zip(contexts, kinds, strict=True)
        ]
        for tensor, array in zip(tensors, (weights[2], other[2]), strict=True):
            values = np.ascontiguousarray(array)
            base.ggml_backend_tensor_set(tensor, c_void_p(values.ctypes.data), c_size_t(0), c_size_t(values.nbytes))

        def compute() -> None:
            assert base.ggml_backend_graph_compute(self._backend, graph) == 0

        def result(shape: tuple[int, int]) -> np.ndarray:
            values = np.empty(shape, np.float32)
            base.ggml_backend_tensor_get(y, c_void_p(values.ctypes.data), c_size_t(0), c_size_t(values.nbytes))
            return values

        try:
            yield compute, result
        finally:
            for buffer in buffers:
                base.ggml_backend_buffer_free(buffer)
            for context in contexts:
                base.ggml_free(context)


__all__ = ["F16", "F32", "NEOX", "NORMAL", "Backend", "Ggml", "c_double", "library"]
