// The tokens still in play during one draw, and the orders they can be put in.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

namespace sampler {

struct Candidate {
    int32_t id;
    float logit;
    float p;
};

// A logit became NaN. No order is defined on NaN: sorting such a list could leave its bounds.
struct NotANumber : std::domain_error {
    using std::domain_error::domain_error;
};

// Throws NotANumber, naming `where`, when `logit` is NaN.
inline void check_number(float logit, const char *where) {
    if (logit != logit) {
        throw NotANumber(where);
    }
}

// At first every token of the vocabulary is in play and its place is its id: that state is kept as the bare row of
// logits (`dense`), so that biases, penalties and a first top-k never build a list of the whole vocabulary. The first
// sampler that needs more asks for `list()`.
//
// Invariant: no logit is NaN; whoever computes a new logit checks it.
class Candidates {
public:
    // Starts a draw over `logits`, which are copied. Throws std::runtime_error when one is NaN.
    void start(std::span<const float> logits);

    bool is_dense() const { return dense_; }
    std::span<float> row() { return {row_.data(), row_.size()}; }
    size_t size() const { return dense_ ? row_.size() : size_; }

    // The list, made from the row on first use.
    std::span<Candidate> list();

    // Keeps the first `n` of the list.
    void keep_first(size_t n) { size_ = n; }
    // Drops the first `n` of the list.
    void drop_first(size_t n) {
        first_ += n;
        size_ -= n;
    }
    // The list becomes `kept`, which is no longer than it.
    void replace(std::span<const Candidate> kept);

    // Leaves the `k` highest logits, 1 <= k <= size(), in descending order. Equal logits stand as
    // std::partial_sort leaves them up to 128 of them, and as bucket_select leaves them beyond.
    void sort_top(size_t k);

    // Sets every p to its share of the exponentials; in descending order of logits first, when `in_order` asks so.
    void softmax(bool in_order);

    // Whether the list stands in descending order of logits, as far as the samplers know.
    bool sorted = false;
    // Place in the list of the token that was drawn; none while negative.
    ptrdiff_t selected = -1;

private:
    std::vector<float> row_;
    std::vector<Candidate> storage_;
    std::vector<Candidate> scratch_;
    size_t first_ = 0;
    size_t size_ = 0;
    bool dense_ = true;
};

// Writes to `out` at least the `k` highest of `from`, the first `k` in descending order; `from` stays as it is.
void bucket_select(std::span<const Candidate> from, size_t k, std::vector<Candidate> &out);

// float to int as the x86 instruction does it: what does not fit, and NaN, is INT_MIN.
int32_t truncate(float value);

}  // namespace sampler
