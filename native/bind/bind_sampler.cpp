#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <random>
#include <stdexcept>
#include <tuple>

#include "bind/bind.h"
#include "sampler/breakers.h"
#include "sampler/chain.h"
#include "sampler/probabilities.h"

namespace nb = nanobind;
using namespace nb::literals;
using sampler::Chain;

namespace {

using Logits = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::span<const float> row(const Logits &logits) {
    if (logits.size() == 0) {
        throw std::invalid_argument("there are no logits");
    }
    return {logits.data(), logits.size()};
}

template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> array_of(const std::vector<T> &values) {
    auto *kept = new std::vector<T>(values);
    nb::capsule owner(kept, [](void *p) noexcept { delete static_cast<std::vector<T> *>(p); });
    return {kept->data(), {kept->size()}, owner};
}

auto arrays(const sampler::TokenProbabilities &result) {
    return std::make_tuple(result.chosen, array_of(result.ids), array_of(result.top));
}

// ids, logits and probabilities as the last run left them.
auto candidates(Chain &chain) {
    std::vector<int32_t> ids;
    std::vector<float> logits, probabilities;
    for (const sampler::Candidate &c : chain.candidates().list()) {
        ids.push_back(c.id);
        logits.push_back(c.logit);
        probabilities.push_back(c.p);
    }
    return std::make_tuple(array_of(ids), array_of(logits), array_of(probabilities));
}

void register_what_changes_logits(nb::class_<Chain> &chain) {
    chain
        .def(
            "add_logit_bias",
            [](Chain &c, std::vector<std::pair<int32_t, float>> biases) {
                c.add(sampler::make_logit_bias(std::move(biases)));
            },
            "biases"_a)
        .def(
            "add_penalties",
            [](Chain &c, int32_t last_n, float repeat, float frequency, float presence) {
                c.add(sampler::make_penalties(last_n, repeat, frequency, presence));
            },
            "last_n"_a, "repeat"_a, "frequency"_a, "presence"_a)
        .def(
            "add_dry",
            [](Chain &c, float multiplier, float base, int32_t allowed_length, int32_t last_n,
               std::shared_ptr<sampler::Breakers> breakers) {
                c.add(sampler::make_dry(multiplier, base, allowed_length, last_n, std::move(breakers)));
            },
            "multiplier"_a, "base"_a, "allowed_length"_a, "last_n"_a, "breakers"_a)
        .def(
            "add_temperature", [](Chain &c, float temperature) { c.add(sampler::make_temperature(temperature)); },
            "temperature"_a)
        .def(
            "add_dynamic_temperature",
            [](Chain &c, float temperature, float range, float exponent) {
                c.add(sampler::make_dynamic_temperature(temperature, range, exponent));
            },
            "temperature"_a, "range"_a, "exponent"_a);
}

void register_what_drops_candidates(nb::class_<Chain> &chain) {
    chain.def(
             "add_top_n_sigma", [](Chain &c, float n) { c.add(sampler::make_top_n_sigma(n)); }, "n"_a)
        .def(
            "add_top_k", [](Chain &c, int32_t k) { c.add(sampler::make_top_k(k)); }, "k"_a)
        .def(
            "add_typical_p", [](Chain &c, float p, size_t min_keep) { c.add(sampler::make_typical_p(p, min_keep)); },
            "p"_a, "min_keep"_a)
        .def(
            "add_top_p", [](Chain &c, float p, size_t min_keep) { c.add(sampler::make_top_p(p, min_keep)); }, "p"_a,
            "min_keep"_a)
        .def(
            "add_min_p", [](Chain &c, float p, size_t min_keep) { c.add(sampler::make_min_p(p, min_keep)); }, "p"_a,
            "min_keep"_a)
        .def(
            "add_xtc",
            [](Chain &c, float probability, float threshold, size_t min_keep, uint32_t seed) {
                c.add(sampler::make_xtc(probability, threshold, min_keep, seed));
            },
            "probability"_a, "threshold"_a, "min_keep"_a, "seed"_a);
}

void register_what_chooses(nb::class_<Chain> &chain) {
    chain.def(
             "add_dist", [](Chain &c, uint32_t seed) { c.add(sampler::make_dist(seed)); }, "seed"_a)
        .def(
            "add_mirostat",
            [](Chain &c, int32_t n_vocab, uint32_t seed, float tau, float eta) {
                c.add(sampler::make_mirostat(n_vocab, seed, tau, eta));
            },
            "n_vocab"_a, "seed"_a, "tau"_a, "eta"_a)
        .def(
            "add_mirostat_v2",
            [](Chain &c, uint32_t seed, float tau, float eta) { c.add(sampler::make_mirostat_v2(seed, tau, eta)); },
            "seed"_a, "tau"_a, "eta"_a)
        .def(
            "add_adaptive_p",
            [](Chain &c, float target, float decay, uint32_t seed) {
                c.add(sampler::make_adaptive_p(target, decay, seed));
            },
            "target"_a, "decay"_a, "seed"_a);
}

void register_chain(nb::module_ &m) {
    nb::class_<Chain> chain(m, "SamplerChain", "Samplers in the order they were added; the last one chooses.");
    chain.def(nb::init<>());
    register_what_changes_logits(chain);
    register_what_drops_candidates(chain);
    register_what_chooses(chain);
    chain.def("accept", &Chain::accept, "token"_a)
        .def(
            "accept_all",
            [](Chain &c, const std::vector<int32_t> &tokens) {
                for (const int32_t token : tokens) {
                    c.accept(token);
                }
            },
            "tokens"_a)
        .def(
            "apply",
            [](Chain &c, const Logits &logits) {
                const std::span<const float> raw = row(logits);
                nb::gil_scoped_release release;
                c.apply(raw);
            },
            "logits"_a, "Runs the samplers over float32 logits [n_vocab] without asking for a choice.")
        .def(
            "sample",
            [](Chain &c, const Logits &logits) {
                const std::span<const float> raw = row(logits);
                nb::gil_scoped_release release;
                c.apply(raw);
                return c.chosen();
            },
            "logits"_a, "Draws a token from float32 logits [n_vocab].")
        .def("candidates", &candidates, "ids, logits and probabilities the last run left, as three arrays.")
        .def(
            "probabilities",
            [](Chain &c, int32_t chosen, size_t n_top) {
                return arrays(sampler::chain_probabilities(c.candidates(), chosen, n_top));
            },
            "chosen"_a, "n_top"_a, "(p of `chosen`, ids, probabilities) the last run left, highest first.");
}

// The generator and the distributions by themselves, for a model of the chain written in Python.
void register_generator(nb::module_ &m) {
    nb::class_<std::mt19937>(m, "Mt19937")
        .def(nb::init<uint32_t>(), "seed"_a)
        .def("unit_double", [](std::mt19937 &g) { return std::uniform_real_distribution<double>(0.0, 1.0)(g); })
        .def("unit_float", [](std::mt19937 &g) { return std::uniform_real_distribution<float>(0.0f, 1.0f)(g); })
        .def(
            "discrete",
            [](std::mt19937 &g, const std::vector<float> &weights) {
                return std::discrete_distribution<int>(weights.begin(), weights.end())(g);
            },
            "weights"_a);
}

void register_breakers(nb::module_ &m) {
    nb::class_<sampler::TokenTexts>(m, "TokenTexts", "The bytes of every token of a vocabulary.")
        .def(
            "__init__",
            [](sampler::TokenTexts *self, const std::vector<nb::bytes> &texts) {
                std::vector<std::string_view> views;
                views.reserve(texts.size());
                for (const nb::bytes &text : texts) {
                    views.emplace_back(text.c_str(), text.size());
                }
                new (self) sampler::TokenTexts(views);
            },
            "texts"_a)
        .def("__len__", &sampler::TokenTexts::size);
    nb::class_<sampler::Breakers>(m, "Breakers", "Token sequences that end a repetition for DRY.")
        .def(nb::init<>())
        .def("__len__", &sampler::Breakers::size)
        .def("add_sequence", &sampler::Breakers::add_sequence, "first"_a, "rest"_a)
        .def(
            "add",
            [](sampler::Breakers &self, const sampler::TokenTexts &texts, const nb::bytes &breaker,
               const std::vector<std::vector<int32_t>> &rests) {
                const std::string_view bytes(breaker.c_str(), breaker.size());
                nb::gil_scoped_release release;
                self.add(texts, bytes, rests);
            },
            "texts"_a, "breaker"_a, "rests"_a,
            "Adds every token that holds `breaker`, and every one that ends in its first n bytes with rests[n - 1] "
            "after.");
}

}  // namespace

void register_sampler(nb::module_ &m) {
    register_breakers(m);
    register_chain(m);
    register_generator(m);
    m.def(
        "token_probabilities",
        [](const Logits &logits, int32_t chosen, size_t n_top) {
            const std::span<const float> raw = row(logits);
            sampler::TokenProbabilities result;
            {
                nb::gil_scoped_release release;
                result = sampler::token_probabilities(raw, chosen, n_top);
            }
            return arrays(result);
        },
        "logits"_a, "chosen"_a, "n_top"_a, "(p of `chosen`, ids, probabilities): softmax over raw logits, top n.");
    m.def(
        "log_probabilities",
        [](const nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu> &p) {
            std::vector<float> logs(p.size());
            std::transform(p.data(), p.data() + p.size(), logs.begin(), sampler::log_probability);
            return array_of(logs);
        },
        "probabilities"_a, "Natural logarithms as float32; of 0, the lowest float32.");
}
