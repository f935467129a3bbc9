#include "tokenizer/bpe.h"

#include <stdexcept>
#include <unordered_map>

#include "tokenizer/merger.h"
#include "tokenizer/special.h"
#include "tokenizer/unicode.h"

namespace bankml {
struct Bpe::Tables {
    explicit Tables(const Vocabulary &v)
        : pretokenizer(v.pretokenizer),
          merges(v.tokens, v.merges, Alphabet::bytes, v.whole_words),
          plain(v.tokens, v.rules, false),
          special(v.tokens, v.rules, true) {}

    Pretokenizer pretokenizer;
    MergeTable merges;
    SpecialTokens plain, special;
};

Bpe::Bpe(const Vocabulary &vocabulary) {
    if (vocabulary.rules.size() != vocabulary.tokens.size()) {
        throw std::invalid_argument("as many rules as tokens are needed");
    }
    tables_ = std::make_unique<const Tables>(vocabulary);
}

Bpe::~Bpe() = default;

std::vector<std::int32_t> Bpe::encode(std::string_view text, bool parse_special) const {
    std::vector<std::int32_t> out;
    Merger merger(tables_->merges);
    std::vector<char32_t> code_points;
    std::vector<std::size_t> ends;
    std::string word;
    for (const Fragment &fragment : (parse_special ? tables_->special : tables_->plain).cut(text)) {
        if (fragment.token >= 0) {
            out.push_back(fragment.token);
            continue;
        }
        unicode::decode(text.substr(fragment.begin, fragment.end - fragment.begin), code_points);
        ends.clear();
        split_words(tables_->pretokenizer, code_points, ends);
        std::size_t at = 0;
        for (const std::size_t end : ends) {
            word.clear();
            for (; at < end; ++at) {
                unicode::append_utf8(code_points[at], word);
            }
            const std::int32_t whole = tables_->merges.word(word);
            if (whole >= 0) {
                out.push_back(whole);
                continue;
            }
            for (const char c : word) {
                merger.add(tables_->merges.byte(static_cast<unsigned char>(c)));
            }
            merger.merge(out);
        }
    }
    return out;
}

int first_in_hash_order(const std::vector<std::string> &tokens, const std::vector<std::string> &names) {
    std::unordered_map<std::string, std::int32_t> table;  // no reserve: growth decides the order
    for (std::size_t id = 0; id < tokens.size(); ++id) {
        table[tokens[id]] = static_cast<std::int32_t>(id);
    }
    for (const auto &[text, id] : table) {
        for (std::size_t i = 0; i < names.size(); ++i) {
            if (text == names[i]) {
                return static_cast<int>(i);
            }
        }
    }
    return -1;
}

}  // namespace bankml
