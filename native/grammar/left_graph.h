// Which rules a rule can begin with, as a graph, and its strongly connected components.
#pragma once
#include <cstdint>
#include <vector>

namespace bankml::grammar {

struct Edges {
    std::vector<std::uint32_t> first;  // [n + 1]
    std::vector<std::uint32_t> to;
};

struct Components {
    std::vector<std::uint32_t> of;  // of each node; an edge never leads to a higher one
    std::uint32_t count = 0;
};

Components components(const Edges &edges);

}  // namespace bankml::grammar
