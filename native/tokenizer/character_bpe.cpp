#include "tokenizer/character_bpe.h"

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

#include "tokenizer/merger.h"
#include "tokenizer/unicode.h"

namespace bankml {
namespace {

constexpr char32_t SPACE = 0x2581;

// The tokens that are line ends alone, by how many.
std::unordered_map<std::size_t, std::int32_t> line_ends(const std::vector<std::string> &tokens) {
    std::unordered_map<std::size_t, std::int32_t> found;
    for (std::size_t id = 0; id < tokens.size(); ++id) {
        if (!tokens[id].empty() && tokens[id].find_first_not_of('\n') == std::string::npos) {
            found.emplace(tokens[id].size(), static_cast<std::int32_t>(id));
        }
    }
    return found;
}

}  // namespace

struct CharacterBpe::Tables {
    explicit Tables(const CharacterVocabulary &v)
        : merges(v.tokens, v.merges, Alphabet::characters, false),
          plain(v.tokens, v.rules, false),
          special(v.tokens, v.rules, true) {
        if (v.whole_lines) {
            whole_lines = line_ends(v.tokens);
        }
    }

    MergeTable merges;
    SpecialTokens plain, special;
    std::unordered_map<std::size_t, std::int32_t> whole_lines;
};

CharacterBpe::CharacterBpe(const CharacterVocabulary &vocabulary) {
    if (vocabulary.rules.size() != vocabulary.tokens.size()) {
        throw std::invalid_argument("as many rules as tokens are needed");
    }
    tables_ = std::make_unique<const Tables>(vocabulary);
}

CharacterBpe::~CharacterBpe() = default;

std::vector<std::int32_t> CharacterBpe::encode(std::string_view text, bool parse_special) const {
    std::vector<std::int32_t> out;
    Merger merger(tables_->merges);
    std::vector<char32_t> code_points;
    for (const Fragment &fragment : (parse_special ? tables_->special : tables_->plain).cut(text)) {
        if (fragment.token >= 0) {
            out.push_back(fragment.token);
            continue;
        }
        unicode::decode(text.substr(fragment.begin, fragment.end - fragment.begin), code_points);
        std::replace(code_points.begin(), code_points.end(), U' ', SPACE);
        // [^\n]+|[\n]+: no pair reaches over the beginning or the end of a run of line ends.
        for (auto at = code_points.begin(); at != code_points.end();) {
            const bool line_end = *at == U'\n';
            const auto end = std::find_if(at, code_points.end(), [&](char32_t c) { return (c == U'\n') != line_end; });
            const auto whole =
                line_end ? tables_->whole_lines.find(static_cast<std::size_t>(end - at)) : tables_->whole_lines.end();
            if (whole != tables_->whole_lines.end()) {
                out.push_back(whole->second);
                at = end;
                continue;
            }
            for (; at != end; ++at) {
                merger.add(tables_->merges.character(*at));
            }
            merger.merge(out);
        }
    }
    return out;
}

}  // namespace bankml
