#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bind/bind.h"
#include "tokenizer/bpe.h"
#include "tokenizer/character_bpe.h"
#include "tokenizer/spm.h"
#include "tokenizer/wpm.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

// The bytes of a `bytes`, or of a `str` in UTF-8.
std::string bytes_of(nb::handle item) {
    if (PyBytes_Check(item.ptr())) {
        return {PyBytes_AS_STRING(item.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(item.ptr()))};
    }
    Py_ssize_t size = 0;
    const char *text = PyUnicode_Check(item.ptr()) ? PyUnicode_AsUTF8AndSize(item.ptr(), &size) : nullptr;
    if (text == nullptr && PyErr_Occurred()) {
        throw nb::python_error();
    }
    if (text == nullptr) {
        throw nb::type_error("bytes or str expected");
    }
    return {text, static_cast<std::size_t>(size)};
}

std::vector<std::string> strings_of(const nb::list &items) {
    std::vector<std::string> strings;
    strings.reserve(items.size());
    for (const nb::handle item : items) {
        strings.push_back(bytes_of(item));
    }
    return strings;
}

// One byte a token: its Cut in the lower two bits, then whether it strips white space on its left and on its right.
std::vector<bankml::SpecialRule> rules_of(const nb::bytes &rules) {
    std::vector<bankml::SpecialRule> found;
    for (std::size_t i = 0; i < rules.size(); ++i) {
        const auto rule = static_cast<std::uint8_t>(rules.c_str()[i]);
        if ((rule & 3) > 2 || rule > 15) {
            throw nb::value_error("a rule is a cut (0, 1 or 2), plus 4 and 8 for white space on the left and right");
        }
        found.push_back({static_cast<bankml::Cut>(rule & 3), (rule & 4) != 0, (rule & 8) != 0});
    }
    return found;
}

template <class Encoder>
nb::list encode(const Encoder &encoder, const nb::bytes &text, bool parse_special) {
    std::vector<std::int32_t> tokens;
    const std::string_view view(text.c_str(), text.size());
    {
        nb::gil_scoped_release release;
        tokens = encoder.encode(view, parse_special);
    }
    nb::list list = nb::steal<nb::list>(PyList_New(static_cast<Py_ssize_t>(tokens.size())));
    if (!list.is_valid()) {
        throw nb::python_error();
    }
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), PyLong_FromLong(tokens[i]));
    }
    return list;
}

class BpeTokenizer {
public:
    BpeTokenizer(const nb::list &tokens, const nb::bytes &rules, const nb::list &merges, const std::string &name,
                 bool whole_words)
        : bpe_(vocabulary(tokens, rules, merges, name, whole_words)) {}

    nb::list encode(const nb::bytes &text, bool parse_special) const { return ::encode(bpe_, text, parse_special); }

private:
    static bankml::Vocabulary vocabulary(const nb::list &tokens, const nb::bytes &rules, const nb::list &merges,
                                         const std::string &name, bool whole_words) {
        const auto pretokenizer = bankml::pretokenizer_named(name);
        if (!pretokenizer) {
            throw nb::value_error("no such pre-tokenizer");
        }
        return {strings_of(tokens), rules_of(rules), strings_of(merges), *pretokenizer, whole_words};
    }

    bankml::Bpe bpe_;
};

class CharacterTokenizer {
public:
    CharacterTokenizer(const nb::list &tokens, const nb::bytes &rules, const nb::list &merges, bool whole_lines)
        : bpe_({strings_of(tokens), rules_of(rules), strings_of(merges), whole_lines}) {}

    nb::list encode(const nb::bytes &text, bool parse_special) const { return ::encode(bpe_, text, parse_special); }

private:
    bankml::CharacterBpe bpe_;
};

class SpmTokenizer {
public:
    SpmTokenizer(const nb::list &tokens, const nb::bytes &rules, const std::vector<float> &scores, bool space_prefix,
                 std::int32_t unknown)
        : spm_({strings_of(tokens), rules_of(rules), scores, space_prefix, unknown}) {}

    nb::list encode(const nb::bytes &text, bool parse_special) const { return ::encode(spm_, text, parse_special); }

private:
    bankml::Spm spm_;
};

class WpmTokenizer {
public:
    WpmTokenizer(const nb::list &tokens, const nb::bytes &rules, bool lower_case, bool strip_accents,
                 std::int32_t unknown)
        : wpm_({strings_of(tokens), rules_of(rules), lower_case, strip_accents, unknown}) {}

    nb::list encode(const nb::bytes &text, bool parse_special) const { return ::encode(wpm_, text, parse_special); }

private:
    bankml::Wpm wpm_;
};

}  // namespace

void register_tokenizer(nb::module_ &m) {
    constexpr const char *encode_doc =
        "Token ids of `text` (bytes; what is not UTF-8 is read as U+FFFD). Runs without the GIL.";
    nb::class_<BpeTokenizer>(
        m, "BpeTokenizer",
        "Byte-level BPE. `tokens` and `merges` are lists of bytes or str; `rules` has one byte a token: 0 its text is "
        "ordinary, 1 it is cut out first where special tokens are parsed, 2 always; 4 and 8 are added where white "
        "space before and behind it goes with it. `whole_words`: a word that is a token is that token. ValueError "
        "where they disagree.")
        .def(nb::init<const nb::list &, const nb::bytes &, const nb::list &, const std::string &, bool>(), "tokens"_a,
             "rules"_a, "merges"_a, "pretokenizer"_a, "whole_words"_a)
        .def("encode", &BpeTokenizer::encode, "text"_a, "parse_special"_a, encode_doc);
    nb::class_<CharacterTokenizer>(
        m, "CharacterTokenizer",
        "Byte-pair merges of characters, a space as U+2581. `whole_lines`: a run of line ends that is a token is that "
        "token.")
        .def(nb::init<const nb::list &, const nb::bytes &, const nb::list &, bool>(), "tokens"_a, "rules"_a, "merges"_a,
             "whole_lines"_a)
        .def("encode", &CharacterTokenizer::encode, "text"_a, "parse_special"_a, encode_doc);
    nb::class_<SpmTokenizer>(
        m, "SpmTokenizer",
        "SentencePiece's merges by score. `space_prefix`: a text begins with a space, again after each special token; "
        "`unknown` stands for a byte that no token stands for, -1: nothing does.")
        .def(nb::init<const nb::list &, const nb::bytes &, const std::vector<float> &, bool, std::int32_t>(),
             "tokens"_a, "rules"_a, "scores"_a, "space_prefix"_a, "unknown"_a)
        .def("encode", &SpmTokenizer::encode, "text"_a, "parse_special"_a, encode_doc);
    nb::class_<WpmTokenizer>(m, "WpmTokenizer",
                             "WordPiece: the longest token first. `lower_case` and `strip_accents`: what is done to a "
                             "text before; `unknown` "
                             "stands for a word that tokens do not spell.")
        .def(nb::init<const nb::list &, const nb::bytes &, bool, bool, std::int32_t>(), "tokens"_a, "rules"_a,
             "lower_case"_a, "strip_accents"_a, "unknown"_a)
        .def("encode", &WpmTokenizer::encode, "text"_a, "parse_special"_a, encode_doc);
    m.def(
        "first_in_hash_order",
        [](const nb::list &tokens, const nb::list &names) {
            return bankml::first_in_hash_order(strings_of(tokens), strings_of(names));
        },
        "tokens"_a, "names"_a, "The index of the name that a hash table of `tokens` meets first, or -1.");
}
