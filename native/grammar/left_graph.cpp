#include "grammar/left_graph.h"

#include <algorithm>

namespace bankml::grammar {

// Tarjan's algorithm with a stack of its own: a grammar may chain a hundred thousand rules.
Components components(const Edges &edges) {
    const std::size_t n = edges.first.size() - 1;
    constexpr std::uint32_t unseen = UINT32_MAX;
    Components out{std::vector<std::uint32_t>(n, unseen), 0};
    std::vector<std::uint32_t> number(n, unseen), low(n), open, path, edge(edges.first.begin(), edges.first.end() - 1);
    std::uint32_t counter = 0;
    for (std::uint32_t start = 0; start < n; ++start) {
        if (number[start] != unseen) {
            continue;
        }
        path.push_back(start);
        while (!path.empty()) {
            const std::uint32_t node = path.back();
            if (number[node] == unseen) {
                number[node] = low[node] = counter++;
                open.push_back(node);
            }
            bool deeper = false;
            while (edge[node] < edges.first[node + 1]) {
                const std::uint32_t to = edges.to[edge[node]];
                if (number[to] == unseen) {
                    path.push_back(to);
                    deeper = true;
                    break;
                }
                // A node whose component is closed is no way back.
                if (out.of[to] == unseen) {
                    low[node] = std::min(low[node], low[to]);
                }
                ++edge[node];
            }
            if (deeper) {
                continue;
            }
            path.pop_back();
            if (low[node] != number[node]) {
                continue;
            }
            std::uint32_t member;
            do {
                member = open.back();
                open.pop_back();
                out.of[member] = out.count;
            } while (member != node);
            ++out.count;
        }
    }
    return out;
}

}  // namespace bankml::grammar
