// Which cells of a K/V cache a row sees, and how a product of Q and K becomes a score.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace bankml {

// A row sees the tokens of its own and of earlier positions; of a sliding window the last `window` of them.
struct VisibleCells {
    const std::int32_t *positions;  // of the token in each cell, -1 for an empty cell; nullptr: the cell's number
    std::size_t cells;              // that are looked at
    std::size_t window;             // positions that a row sees, its own among them; 0: all

    // The cells after the last one that a row at `position` can see.
    std::size_t end(std::size_t position) const { return positions == nullptr ? std::min(cells, position + 1) : cells; }

    std::int32_t position_of(std::size_t cell) const {
        return positions == nullptr ? std::int32_t(cell) : positions[cell];
    }

    // The last position that a row at `position` no longer sees.
    std::int32_t hidden_to(std::size_t position) const {
        return window == 0 ? -1 : std::int32_t(position) - std::int32_t(window);
    }

    // Calls run(begin, end) for the cells in [begin, end) that a row at `position` sees, neighbours together, in order.
    template <class Run>
    void each_run(std::size_t position, std::size_t begin, std::size_t limit, const Run &run) const {
        const std::size_t last = std::min(limit, end(position));
        if (positions == nullptr && window == 0) {
            if (begin < last) {
                run(begin, last);
            }
            return;
        }
        const std::int32_t hidden = hidden_to(position);
        const auto sees = [&](std::size_t cell) {
            const std::int32_t at = position_of(cell);
            return at >= 0 && at > hidden && at <= std::int32_t(position);
        };
        for (std::size_t cell = begin; cell < last;) {
            if (!sees(cell)) {
                ++cell;
                continue;
            }
            const std::size_t first = cell;
            while (cell < last && sees(cell)) {
                ++cell;
            }
            run(first, cell);
        }
    }
};

// One tile of cells: the positions in it, for a row's comparison. What no row sees is beyond every position.
template <std::size_t size>
struct TilePositions {
    std::int32_t at[size];

    TilePositions(const VisibleCells &visible, std::size_t first) {
        constexpr std::int32_t never = std::numeric_limits<std::int32_t>::max();
        for (std::size_t c = 0; c < size; ++c) {
            const std::int32_t position = first + c < visible.cells ? visible.position_of(first + c) : never;
            at[c] = position < 0 ? never : position;
        }
    }

    // Whether one of `rows` rows at positions `first` on sees a cell of the tile.
    bool seen_by(const VisibleCells &visible, std::size_t first, std::size_t rows) const {
        for (std::size_t position = first; position < first + rows; ++position) {
            const std::int32_t hidden = visible.hidden_to(position);
            for (const std::int32_t one : at) {
                if (one > hidden && one <= std::int32_t(position)) {
                    return true;
                }
            }
        }
        return false;
    }
};

// score = scale * (q . k), and with a soft-cap cap * tanh of that, where scale was divided by cap.
struct ScoreRule {
    float scale, softcap;

    ScoreRule(float by, float cap) : scale(cap == 0.0f ? by : by / cap), softcap(cap) {}

    float operator()(float product) const {
        const float score = product * scale;
        return softcap == 0.0f ? score : softcap * std::tanh(score);
    }
};

// The running maximum of the scores and the sum of their weights.
struct OnlineSoftmax {
    float maximum = -std::numeric_limits<float>::infinity(), sum = 0.0f;
};

}  // namespace bankml
