"""The ggml types of GGUF tensors: weights and bytes of one block.

Ids below `GGML_TYPE_COUNT` are llama.cpp b11192's; the two above it exist in PrismML's fork only.
Ids 4, 5, 31-33 and 36-38 are of layouts that were removed.
"""

from dataclasses import dataclass

GGML_TYPE_COUNT = 43


@dataclass(frozen=True)
class BlockType:
    """One row of the table: `weights` values share a block of `size` bytes."""

    id: int
    name: str
    weights: int
    size: int

    def nbytes(self, elements: int) -> int:
        """Bytes of `elements` values, which must fill whole blocks."""
        return elements // self.weights * self.size

    @property
    def fork_only(self) -> bool:
        return self.id >= GGML_TYPE_COUNT


BLOCK_TYPES = {
    row.id: row
    for row in (
        BlockType(0, "F32", 1, 4),
        BlockType(1, "F16", 1, 2),
        BlockType(2, "Q4_0", 32, 18),
        BlockType(3, "Q4_1", 32, 20),
        BlockType(6, "Q5_0", 32, 22),
        BlockType(7, "Q5_1", 32, 24),
        BlockType(8, "Q8_0", 32, 34),
        BlockType(9, "Q8_1", 32, 36),
        BlockType(10, "Q2_K", 256, 84),
        BlockType(11, "Q3_K", 256, 110),
        BlockType(12, "Q4_K", 256, 144),
        BlockType(13, "Q5_K", 256, 176),
        BlockType(14, "Q6_K", 256, 210),
        BlockType(15, "Q8_K", 256, 292),
        BlockType(16, "IQ2_XXS", 256, 66),
        BlockType(17, "IQ2_XS", 256, 74),
        BlockType(18, "IQ3_XXS", 256, 98),
        BlockType(19, "IQ1_S", 256, 50),
        BlockType(20, "IQ4_NL", 32, 18),
        BlockType(21, "IQ3_S", 256, 110),
        BlockType(22, "IQ2_S", 256, 82),
        BlockType(23, "IQ4_XS", 256, 136),
        BlockType(24, "I8", 1, 1),
        BlockType(25, "I16", 1, 2),
        BlockType(26, "I32", 1, 4),
        BlockType(27, "I64", 1, 8),
        BlockType(28, "F64", 1, 8),
        BlockType(29, "IQ1_M", 256, 56),
        BlockType(30, "BF16", 1, 2),
        BlockType(34, "TQ1_0", 256, 54),
        BlockType(35, "TQ2_0", 256, 66),
        BlockType(39, "MXFP4", 32, 17),
        BlockType(40, "NVFP4", 64, 36),
        BlockType(41, "Q1_0", 128, 18),
        BlockType(42, "Q2_0", 64, 18),
        BlockType(142, "PQ2_0", 128, 34),
        BlockType(143, "PTQ1_0", 128, 28),
    )
}

F32 = BLOCK_TYPES[0]
F16 = BLOCK_TYPES[1]
Q4_0 = BLOCK_TYPES[2]
Q4_1 = BLOCK_TYPES[3]
Q5_0 = BLOCK_TYPES[6]
Q5_1 = BLOCK_TYPES[7]
Q8_0 = BLOCK_TYPES[8]
BF16 = BLOCK_TYPES[30]
Q1_0 = BLOCK_TYPES[41]
Q2_0 = BLOCK_TYPES[42]

# Before b11192 settled on groups of 64, Q2_0 files had one f16 scale for 128 weights under the same id.
LEGACY_Q2_0 = BlockType(42, "Q2_0 (group 128)", 128, 34)
