#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include "bind/bind.h"
#include "grammar/matcher.h"

namespace nb = nanobind;
using namespace nb::literals;
using bankml::grammar::Matcher;
using bankml::grammar::Program;
using bankml::grammar::Vocabulary;

namespace {

template <class T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Row = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
std::span<const T> span_of(const Array<T> &array) {
    return {array.data(), array.size()};
}

// A matcher whose calls check what comes from Python.
class GrammarMatcher {
public:
    GrammarMatcher(std::shared_ptr<const Program> program, std::shared_ptr<const Vocabulary> vocabulary)
        : matcher_(std::move(program), std::move(vocabulary)) {}

    bool complete() const { return matcher_.complete(); }
    bool allows(std::uint32_t token) { return matcher_.allows(known(token)); }
    bool accept(std::uint32_t token) { return matcher_.accept(known(token)); }
    bool accept_text(const nb::bytes &text) { return matcher_.accept_text({text.c_str(), text.size()}); }
    std::size_t mask(const Array<float> &logits, const Row &out) {
        const std::size_t n = matcher_.vocabulary().n_tokens();
        if (logits.size() != n || out.size() != n) {
            throw nb::value_error("logits are [n_vocab]");
        }
        const std::span<const float> from(logits.data(), n);
        const std::span<float> to(out.data(), n);
        const nb::gil_scoped_release release;
        return matcher_.mask(from, to);
    }

private:
    std::uint32_t known(std::uint32_t token) const {
        if (token >= matcher_.vocabulary().n_tokens()) {
            throw nb::index_error("no such token");
        }
        return token;
    }

    Matcher matcher_;
};

}  // namespace

void register_grammar(nb::module_ &m) {
    nb::class_<Program>(
        m, "GrammarProgram",
        "A compiled grammar of elements: their kinds uint8 [n] and values uint32 [n], and each rule's first element "
        "uint32 [rules]. ValueError where they are no grammar.")
        .def(
            "__init__",
            [](Program *self, const Array<std::uint8_t> &kinds, const Array<std::uint32_t> &values,
               const Array<std::uint32_t> &starts,
               std::uint32_t root) { new (self) Program(span_of(kinds), span_of(values), span_of(starts), root); },
            "kinds"_a, "values"_a, "starts"_a, "root"_a)
        .def_prop_ro("left_recursive", &Program::left_recursive,
                     "A rule that begins with itself, or -1. A matcher needs -1.");
    nb::class_<Vocabulary>(m, "GrammarVocabulary",
                           "The prefix tree of a vocabulary: the bytes of every token, and the ids that end an answer.")
        .def(
            "__init__",
            [](Vocabulary *self, const nb::list &pieces, const std::vector<std::uint32_t> &end_of_generation) {
                std::vector<std::string> texts;
                texts.reserve(pieces.size());
                for (const nb::handle piece : pieces) {
                    const auto bytes = nb::cast<nb::bytes>(piece);
                    texts.emplace_back(bytes.c_str(), bytes.size());
                }
                new (self) Vocabulary(std::move(texts), end_of_generation);
            },
            "pieces"_a, "end_of_generation"_a)
        .def_prop_ro("n_vocab", &Vocabulary::n_tokens)
        .def(
            "piece",
            [](const Vocabulary &self, std::uint32_t token) {
                if (token >= self.n_tokens()) {
                    throw nb::index_error("no such token");
                }
                return nb::bytes(self.piece(token).data(), self.piece(token).size());
            },
            "token"_a, "The bytes of a token up to the first NUL.");
    nb::class_<GrammarMatcher>(m, "GrammarMatcher",
                               "One text held to a grammar. ValueError when the grammar is more than can be held.")
        .def(
            "__init__",
            [](GrammarMatcher *self, std::shared_ptr<Program> program, std::shared_ptr<Vocabulary> vocabulary) {
                if (program->left_recursive() >= 0) {
                    throw nb::value_error("a left-recursive grammar cannot be matched");
                }
                new (self) GrammarMatcher(std::move(program), std::move(vocabulary));
            },
            "program"_a, "vocabulary"_a)
        .def_prop_ro("complete", &GrammarMatcher::complete)
        .def("allows", &GrammarMatcher::allows, "token"_a)
        .def("mask", &GrammarMatcher::mask, "logits"_a, "out"_a,
             "Writes the masked logits; the number of tokens allowed. Runs without the GIL.")
        .def("accept", &GrammarMatcher::accept, "token"_a, "False when the grammar has no way on.")
        .def("accept_text", &GrammarMatcher::accept_text, "text"_a);
}
