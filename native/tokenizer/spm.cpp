#include "tokenizer/spm.h"

#include <algorithm>
#include <cstdio>
#include <queue>
#include <stdexcept>

namespace bankml {
namespace {

constexpr std::string_view SPACE = "\xe2\x96\x81";
constexpr std::int32_t NONE = -1;

// A part of the text: a character, then what was merged into it. Empty: it was merged into the one before.
struct Part {
    std::size_t begin, size;
    std::int32_t previous, next;
};

// Two neighbours that make a token of `size` bytes.
struct Merge {
    std::int32_t left, right;
    float score;
    std::size_t size;
    // The highest score first, the leftmost of equals.
    bool operator<(const Merge &other) const { return score != other.score ? score < other.score : left > other.left; }
};

// By the upper bits of its first byte.
std::size_t character_bytes(unsigned char lead) {
    static constexpr unsigned char LENGTHS[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4};
    return LENGTHS[lead >> 4];
}

std::vector<Part> characters(std::string_view text) {
    std::vector<Part> parts;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t size = std::min(character_bytes(static_cast<unsigned char>(text[at])), text.size() - at);
        const auto index = static_cast<std::int32_t>(parts.size());
        at += size;
        parts.push_back({at - size, size, index - 1, at == text.size() ? NONE : index + 1});
    }
    return parts;
}

}  // namespace

Spm::Spm(SpmVocabulary vocabulary)
    : vocabulary_(std::move(vocabulary)),
      plain_(vocabulary_.tokens, vocabulary_.rules, false),
      special_(vocabulary_.tokens, vocabulary_.rules, true) {
    const std::size_t n = vocabulary_.tokens.size();
    if (vocabulary_.rules.size() != n || vocabulary_.scores.size() != n) {
        throw std::invalid_argument("as many rules and scores as tokens are needed");
    }
    for (std::size_t id = 0; id < n; ++id) {
        ids_[vocabulary_.tokens[id]] = static_cast<std::int32_t>(id);
    }
    for (int byte = 0; byte < 256; ++byte) {
        char name[8];
        std::snprintf(name, sizeof name, "<0x%02X>", byte);
        const char raw = static_cast<char>(byte);
        auto found = ids_.find(name);
        if (found == ids_.end()) {
            found = ids_.find(std::string_view(&raw, 1));
        }
        bytes_[byte] = found == ids_.end() ? vocabulary_.unknown : found->second;
    }
}

void Spm::append(std::string_view text, std::vector<std::int32_t> &out) const {
    std::vector<Part> parts = characters(text);
    std::priority_queue<Merge> queue;
    const auto propose = [&](std::int32_t left, std::int32_t right) {
        if (left == NONE || right == NONE) {
            return;
        }
        const std::size_t size = parts[left].size + parts[right].size;
        const auto found = ids_.find(text.substr(parts[left].begin, size));
        if (found != ids_.end()) {
            queue.push({left, right, vocabulary_.scores[found->second], size});
        }
    };
    for (std::int32_t i = 1; i < static_cast<std::int32_t>(parts.size()); ++i) {
        propose(i - 1, i);
    }
    while (!queue.empty()) {
        const Merge merge = queue.top();
        queue.pop();
        Part &left = parts[merge.left], &right = parts[merge.right];
        if (left.size == 0 || right.size == 0 || left.size + right.size != merge.size) {
            continue;  // one of them has been merged with another since
        }
        left.size += right.size;
        right.size = 0;
        left.next = right.next;
        if (right.next != NONE) {
            parts[right.next].previous = merge.left;
        }
        propose(left.previous, merge.left);
        propose(merge.left, left.next);
    }
    for (const Part &part : parts) {
        if (part.size == 0) {
            continue;
        }
        const std::string_view piece = text.substr(part.begin, part.size);
        if (const auto found = ids_.find(piece); found != ids_.end()) {
            out.push_back(found->second);
            continue;
        }
        for (const char byte : piece) {
            if (bytes_[static_cast<unsigned char>(byte)] >= 0) {
                out.push_back(bytes_[static_cast<unsigned char>(byte)]);
            }
        }
    }
}

std::vector<std::int32_t> Spm::encode(std::string_view text, bool parse_special) const {
    std::vector<std::int32_t> out;
    std::string escaped;
    bool after_special = true;
    for (const Fragment &fragment : (parse_special ? special_ : plain_).cut(text)) {
        if (fragment.token >= 0) {
            out.push_back(fragment.token);
            after_special = true;
            continue;
        }
        escaped = vocabulary_.space_prefix && after_special ? SPACE : "";
        for (const char c : text.substr(fragment.begin, fragment.end - fragment.begin)) {
            if (c == ' ') {
                escaped += SPACE;
            } else {
                escaped.push_back(c);
            }
        }
        append(escaped, out);
        after_special = false;
    }
    return out;
}

}  // namespace bankml
