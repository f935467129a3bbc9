#include "kernels/project.h"

#include <algorithm>

#include "isa/instruction_set.h"

namespace bankml {
namespace {

constexpr std::size_t piece_rows = 32;    // rows of a piece: what every instruction set finds side by side
constexpr std::size_t slab_columns = 64;  // columns that meet a piece while it is in the cache
constexpr std::size_t few_columns = 8;    // so few take less time than reading the weights
constexpr std::size_t buffer_align = 16;  // floats between two formats' buffers

// The activations in one format: where its columns are.
struct Converted {
    const ActivationFormat *format;
    float *buffer;
};

// Rows [row, row + rows) of a job's matrix with its columns [begin, begin + columns).
struct Piece {
    const Matrix *matrix;
    const Products *products;
    bool block;
    std::size_t scratch;  // floats
    const std::byte *columns;
    std::size_t row, rows, begin, count, offset;
};

// Every row of x in each of the formats that the matrices ask for, converted once a format.
std::vector<Converted> convert(Pool &pool, const std::vector<ProductJob> &jobs, const float *x, std::size_t n,
                               std::size_t k) {
    std::vector<Converted> found;
    std::vector<std::size_t> starts;
    std::size_t floats = 0;
    for (const ProductJob &job : jobs) {
        const ActivationFormat *format = job.matrix->format->activation;
        if (std::none_of(found.begin(), found.end(), [&](const Converted &c) { return c.format == format; })) {
            found.push_back({format, nullptr});
            starts.push_back(floats);
            floats += (format->buffer_floats(k, n) + buffer_align - 1) / buffer_align * buffer_align;
        }
    }
    float *memory = pool.shared(Pool::Shared::activations, floats);
    for (std::size_t f = 0; f < found.size(); ++f) {
        found[f].buffer = memory + starts[f];
    }
    pool.run(n, [&](std::size_t i, std::size_t) {
        for (const Converted &to : found) {
            to.format->convert(k, n, i, x + i * k, to.buffer);
        }
    });
    return found;
}

// Which family computes which columns.
std::vector<ProductJob> jobs_of(const std::vector<Matrix> &matrices, std::size_t n, std::size_t span) {
    std::vector<ProductJob> jobs;
    jobs.reserve(matrices.size());
    std::size_t offset = 0;
    for (const Matrix &m : matrices) {
        const Choice choice = m.format->choose(m.rows, m.columns, span);
        const std::size_t first = offset;
        offset += m.rows;
        if (choice.tail == 0) {
            jobs.push_back({&m, choice.family, 0, n, first});
            continue;
        }
        for (std::size_t at = 0; at < n; at += span) {
            const std::size_t tail = at + span - choice.tail;
            if (at < tail) {
                jobs.push_back({&m, choice.family, at, tail, first});
            }
            jobs.push_back({&m, choice.tail_family, tail, at + span, first});
        }
    }
    return jobs;
}

// Few columns read every weight once: pieces large enough to stream, small enough that the threads end together.
std::size_t streamed_rows(std::size_t total_rows, std::size_t row_bytes, std::size_t threads) {
    constexpr std::size_t least_bytes = 32768;
    const std::size_t rows = std::max(least_bytes / row_bytes, total_rows / (threads * 16));
    return std::max(piece_rows, rows / piece_rows * piece_rows);
}

// The most rows and columns of a piece, and whether the block product takes them.
struct Cut {
    bool block;
    BlockPlan plan;
};

Cut cut_of(const Products &products, const Matrix &m, std::size_t count, std::size_t total_rows, std::size_t threads) {
    const std::size_t streamed = streamed_rows(total_rows, m.format->row_bytes(m.columns), threads);
    if (products.block && (count >= products.block_from || !products.rows)) {
        BlockPlan plan = products.plan(m.columns);
        if (count <= few_columns) {  // so that the threads end together
            plan.rows = std::min(plan.rows, 4 * streamed);
        }
        return {true, plan};
    }
    if (count <= few_columns) {
        return {false, {streamed, few_columns, 0}};
    }
    return {false, {piece_rows, slab_columns, 0}};
}

void cut(const ProductJob &job, const Converted &x, const Cut &by, std::vector<Piece> &pieces) {
    const Matrix &m = *job.matrix;
    const std::size_t column_bytes = x.format->column_bytes(m.columns);
    const Products &family = products(*m.format, job.family);
    for (std::size_t row = 0; row < m.rows; row += by.plan.rows) {
        const std::size_t rows = std::min(by.plan.rows, m.rows - row);
        for (std::size_t at = job.begin; at < job.end;) {
            const std::size_t count = std::min(by.plan.columns, job.end - at);
            const std::byte *columns = reinterpret_cast<const std::byte *>(x.buffer) + at * column_bytes;
            pieces.push_back({&m, &family, by.block, by.plan.scratch, columns, row, rows, at, count, job.offset + row});
            at += count;
        }
    }
}

}  // namespace

void run_products(Pool &pool, const std::vector<ProductJob> &jobs, const float *x, std::size_t n, std::size_t columns,
                  float *y, std::size_t ldy) {
    const std::vector<Converted> converted = convert(pool, jobs, x, n, columns);
    std::size_t total_rows = 0;
    for (const ProductJob &job : jobs) {
        total_rows += job.matrix->rows;
    }
    std::vector<Piece> pieces;
    pieces.reserve(pool.threads() * 16 + jobs.size());  // what one column is cut into
    for (const ProductJob &job : jobs) {
        const Matrix &m = *job.matrix;
        const auto own = [&](const Converted &c) { return c.format == m.format->activation; };
        const Products &family = products(*m.format, job.family);
        const Cut by = cut_of(family, m, job.end - job.begin, total_rows, pool.threads());
        cut(job, *std::find_if(converted.begin(), converted.end(), own), by, pieces);
    }
    pool.run(pieces.size(), [&](std::size_t p, std::size_t thread) {
        const Piece &piece = pieces[p];
        const Matrix &m = *piece.matrix;
        const std::uint8_t *w = m.data + piece.row * m.format->row_bytes(m.columns);
        Product *product = piece.block ? piece.products->block : piece.products->rows;
        float *scratch = piece.block ? pool.scratch(thread, piece.scratch) : nullptr;
        product(w, piece.rows, m.columns, piece.columns, piece.count, y + piece.begin * ldy + piece.offset, ldy,
                scratch);
    });
}

void project(Pool &pool, const std::vector<Matrix> &matrices, const float *x, std::size_t n, std::size_t span, float *y,
             std::size_t ldy) {
    run_products(pool, jobs_of(matrices, n, span), x, n, matrices[0].columns, y, ldy);
}

}  // namespace bankml
