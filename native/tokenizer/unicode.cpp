#include "tokenizer/unicode.h"

#include <algorithm>

#include "tokenizer/unicode_tables.h"

namespace bankml::unicode {
namespace {

constexpr char32_t N_CODE_POINTS = 0x110000;

std::vector<Class> expand() {
    std::vector<Class> classes(N_CODE_POINTS);
    const std::size_t n_runs = sizeof RUNS / sizeof RUNS[0];
    for (std::size_t i = 0; i < n_runs; ++i) {
        const char32_t end = i + 1 < n_runs ? RUNS[i + 1] >> 3 : N_CODE_POINTS;
        for (char32_t c = RUNS[i] >> 3; c < end; ++c) {
            classes[c] = static_cast<Class>(RUNS[i] & 7);
        }
    }
    return classes;
}

// What a run of `table` maps `c` to, each code point past its first to `step` more; `c` itself where no run has it.
template <std::size_t N>
char32_t mapped(const std::uint64_t (&table)[N], char32_t c, char32_t step) {
    constexpr std::uint64_t COUNT = (1 << 11) - 1, TO = (1 << 21) - 1;
    const auto after = std::lower_bound(table, table + N, (std::uint64_t{c} + 1) << 32);
    if (after == table) {
        return c;
    }
    const std::uint64_t run = after[-1];
    const auto past = c - static_cast<char32_t>(run >> 32);
    return past > (run >> 21 & COUNT) ? c : static_cast<char32_t>(run & TO) + past * step;
}

}  // namespace

Class class_of(char32_t code_point) {
    static const std::vector<Class> classes = expand();
    return code_point < N_CODE_POINTS ? classes[code_point] : Class::other;
}

char32_t lower_case(char32_t code_point) { return mapped(LOWER_CASE, code_point, 1); }

char32_t base_of(char32_t code_point) { return mapped(BASES, code_point, 0); }

std::size_t utf8_length(char32_t code_point) {
    return code_point < 0x80 ? 1 : code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
}

void decode(std::string_view bytes, std::vector<char32_t> &code_points) {
    code_points.clear();
    code_points.reserve(bytes.size());
    for (std::size_t at = 0; at < bytes.size();) {
        const auto lead = static_cast<unsigned char>(bytes[at]);
        const std::size_t length = lead < 0x80   ? 1
                                   : lead < 0xC0 ? 0
                                   : lead < 0xE0 ? 2
                                   : lead < 0xF0 ? 3
                                   : lead < 0xF8 ? 4
                                                 : 0;
        char32_t value = length == 1 ? lead : lead & (0x7Fu >> length);
        bool whole = length != 0 && at + length <= bytes.size();
        for (std::size_t i = 1; whole && i < length; ++i) {
            const auto next = static_cast<unsigned char>(bytes[at + i]);
            whole = (next & 0xC0) == 0x80;
            value = value << 6 | (next & 0x3F);
        }
        whole = whole && value < N_CODE_POINTS;
        code_points.push_back(whole ? value : REPLACEMENT);
        at += whole ? length : 1;
    }
}

void append_utf8(char32_t c, std::string &out) {
    const std::size_t length = utf8_length(c);
    if (length == 1) {
        out.push_back(static_cast<char>(c));
        return;
    }
    static constexpr unsigned char LEAD[] = {0, 0, 0xC0, 0xE0, 0xF0};
    out.push_back(static_cast<char>(LEAD[length] | c >> 6 * (length - 1)));
    for (std::size_t i = length - 1; i-- > 0;) {
        out.push_back(static_cast<char>(0x80 | (c >> 6 * i & 0x3F)));
    }
}

}  // namespace bankml::unicode
