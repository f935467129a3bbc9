#include "sampler/candidates.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace sampler {
namespace {

bool higher(const Candidate &a, const Candidate &b) { return a.logit > b.logit; }

// Reads a row of logits as candidates, so that std::partial_sort_copy can pick from it without a list being made.
class RowIterator {
public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Candidate;
    using difference_type = ptrdiff_t;
    using pointer = const Candidate *;
    using reference = Candidate;

    RowIterator(const float *row, int32_t id) : row_(row), id_(id) {}
    Candidate operator*() const { return {id_, row_[id_], 0.0f}; }
    RowIterator &operator++() {
        ++id_;
        return *this;
    }
    RowIterator operator++(int) {
        RowIterator before = *this;
        ++id_;
        return before;
    }
    bool operator==(const RowIterator &other) const { return id_ == other.id_; }

private:
    const float *row_;
    int32_t id_;
};

constexpr size_t n_buckets = 128;
constexpr float lowest_bucket = -10.0f;
constexpr float highest_bucket = 10.0f;
constexpr float buckets_per_unit = n_buckets / (highest_bucket - lowest_bucket);
constexpr float bucket_of_zero = -lowest_bucket * buckets_per_unit;

int32_t bucket_of(float logit) {
    const int32_t bucket = truncate(buckets_per_unit * logit + bucket_of_zero);
    return std::clamp<int32_t>(bucket, 0, n_buckets - 1);
}

// Counting sort into buckets by logit, highest first, as far down as `k` reaches; then each bucket is sorted, the last
// one partially. `at(i)` is candidate i of n.
template <class At>
void select(At at, size_t n, size_t k, std::vector<Candidate> &out) {
    std::vector<uint8_t> bucket(n);
    std::vector<size_t> count(n_buckets, 0);
    for (size_t i = 0; i < n; ++i) {
        bucket[i] = static_cast<uint8_t>(bucket_of(at(i).logit));
        ++count[bucket[i]];
    }

    std::vector<size_t> begin(n_buckets, 0);
    size_t lowest = n_buckets;
    size_t have = 0;
    while (lowest > 0 && have < k) {
        --lowest;
        begin[lowest] = have;
        have += count[lowest];
    }

    out.resize(have);
    std::vector<size_t> next = begin;
    for (size_t i = 0; i < n; ++i) {
        if (bucket[i] >= lowest) {
            out[next[bucket[i]]++] = at(i);
        }
    }
    for (size_t b = n_buckets - 1; b > lowest; --b) {
        std::sort(out.begin() + begin[b], out.begin() + begin[b] + count[b], higher);
    }
    std::partial_sort(out.begin() + begin[lowest], out.begin() + k, out.end(), higher);
}

}  // namespace

int32_t truncate(float value) {
    const bool fits = value > -2147483648.0f && value < 2147483648.0f;
    return fits ? static_cast<int32_t>(value) : std::numeric_limits<int32_t>::min();
}

void bucket_select(std::span<const Candidate> from, size_t k, std::vector<Candidate> &out) {
    select([from](size_t i) { return from[i]; }, from.size(), k, out);
}

void Candidates::start(std::span<const float> logits) {
    row_.resize(logits.size());
    int not_a_number = 0;
    for (size_t i = 0; i < logits.size(); ++i) {
        row_[i] = logits[i];
        not_a_number |= logits[i] != logits[i];
    }
    if (not_a_number) {
        throw std::runtime_error("a logit of the model is not a number");
    }
    dense_ = true;
    sorted = false;
    selected = -1;
    first_ = size_ = 0;
}

std::span<Candidate> Candidates::list() {
    if (dense_) {
        storage_.resize(row_.size());
        for (size_t i = 0; i < row_.size(); ++i) {
            storage_[i] = {static_cast<int32_t>(i), row_[i], 0.0f};
        }
        first_ = 0;
        size_ = row_.size();
        dense_ = false;
    }
    return {storage_.data() + first_, size_};
}

void Candidates::replace(std::span<const Candidate> kept) {
    std::copy(kept.begin(), kept.end(), list().begin());
    size_ = kept.size();
}

void Candidates::sort_top(size_t k) {
    if (dense_ && k <= n_buckets) {
        // libstdc++'s partial_sort_copy drives the same heap through the same steps as its partial_sort, and what
        // partial_sort leaves behind the first k is dropped anyway.
        storage_.resize(k);
        const RowIterator begin(row_.data(), 0);
        const RowIterator end(row_.data(), static_cast<int32_t>(row_.size()));
        std::partial_sort_copy(begin, end, storage_.begin(), storage_.end(), higher);
        first_ = 0;
        dense_ = false;
    } else if (dense_) {
        const float *row = row_.data();
        const auto at = [row](size_t i) { return Candidate{static_cast<int32_t>(i), row[i], 0.0f}; };
        select(at, row_.size(), k, storage_);
        first_ = 0;
        dense_ = false;
    } else if (k <= n_buckets) {
        const std::span<Candidate> all = list();
        std::partial_sort(all.begin(), all.begin() + k, all.end(), higher);
    } else {
        bucket_select(list(), k, scratch_);
        std::copy(scratch_.begin(), scratch_.begin() + k, list().begin());
    }
    size_ = k;
    sorted = true;
}

void Candidates::softmax(bool in_order) {
    if (in_order && !sorted) {
        sort_top(size());
    }
    const std::span<Candidate> all = list();
    float highest = all[0].logit;
    if (!sorted) {
        for (const Candidate &c : all) {
            highest = std::max(highest, c.logit);
        }
    }
    float sum = 0.0f;
    for (Candidate &c : all) {
        c.p = expf(c.logit - highest);
        sum += c.p;
    }
    for (Candidate &c : all) {
        c.p /= sum;
    }
}

}  // namespace sampler
