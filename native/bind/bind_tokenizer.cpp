#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bind/bind.h"
#include "tokenizer/bpe.h"

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

class Tokenizer {
public:
    Tokenizer(const nb::list &tokens, const nb::bytes &cuts, const nb::list &merges, const std::string &pretokenizer)
        : bpe_(vocabulary(tokens, cuts, merges, pretokenizer)) {}

    nb::list encode(const nb::bytes &text, bool parse_special) const {
        std::vector<std::int32_t> tokens;
        const std::string_view view(text.c_str(), text.size());
        {
            nb::gil_scoped_release release;
            tokens = bpe_.encode(view, parse_special);
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

private:
    static bankml::Vocabulary vocabulary(const nb::list &tokens, const nb::bytes &cuts, const nb::list &merges,
                                         const std::string &name) {
        const auto pretokenizer = bankml::pretokenizer_named(name);
        if (!pretokenizer) {
            throw nb::value_error("no such pre-tokenizer");
        }
        bankml::Vocabulary v{strings_of(tokens), {}, strings_of(merges), *pretokenizer};
        for (std::size_t i = 0; i < cuts.size(); ++i) {
            const auto cut = static_cast<std::uint8_t>(cuts.c_str()[i]);
            if (cut > 2) {
                throw nb::value_error("a cut is 0, 1 or 2");
            }
            v.cuts.push_back(static_cast<bankml::Cut>(cut));
        }
        return v;
    }

    bankml::Bpe bpe_;
};

}  // namespace

void register_tokenizer(nb::module_ &m) {
    nb::class_<Tokenizer>(
        m, "Tokenizer",
        "Byte-level BPE. `tokens` and `merges` are lists of bytes or str; `cuts` has one byte a token: 0 its text is "
        "ordinary, 1 it is cut out first where special tokens are parsed, 2 always. ValueError where they disagree.")
        .def(nb::init<const nb::list &, const nb::bytes &, const nb::list &, const std::string &>(), "tokens"_a,
             "cuts"_a, "merges"_a, "pretokenizer"_a)
        .def("encode", &Tokenizer::encode, "text"_a, "parse_special"_a,
             "Token ids of `text` (bytes; what is not UTF-8 is read as U+FFFD). Runs without the GIL.");
    m.def(
        "first_in_hash_order",
        [](const nb::list &tokens, const nb::list &names) {
            return bankml::first_in_hash_order(strings_of(tokens), strings_of(names));
        },
        "tokens"_a, "names"_a, "The index of the name that a hash table of `tokens` meets first, or -1.");
}
