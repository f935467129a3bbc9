#include "grammar/utf8.h"

namespace bankml::grammar {

namespace {

// How many bytes follow a first byte; -1 after one that continues a character.
int following(std::uint8_t first) {
    if (first < 0x80) {
        return 0;
    }
    if (first < 0xC0) {
        return -1;
    }
    if (first < 0xE0) {
        return 1;
    }
    return first < 0xF0 ? 2 : 3;
}

bool continues(std::uint8_t byte) { return (byte & 0xC0) == 0x80; }

}  // namespace

Decoded decode(std::string_view bytes, Partial before) {
    bytes = bytes.substr(0, bytes.find('\0'));
    Decoded out{{}, before};
    out.characters.reserve(bytes.size());
    std::size_t at = 0;
    auto take = [&](Partial &part) {
        part.bits = (part.bits << 6) + (static_cast<std::uint8_t>(bytes[at++]) & 0x3F);
        --part.missing;
    };
    // Only here, where a character was cut between two tokens, are its further bytes checked.
    while (at < bytes.size() && out.rest.missing > 0) {
        if (!continues(static_cast<std::uint8_t>(bytes[at]))) {
            return {{}, {0, -1}};
        }
        take(out.rest);
    }
    if (before.missing > 0 && out.rest.missing == 0) {
        out.characters.push_back(out.rest.bits);
    }
    while (at < bytes.size()) {
        const auto first = static_cast<std::uint8_t>(bytes[at++]);
        const int more = following(first);
        if (more < 0) {
            return {{}, {0, -1}};
        }
        out.rest = {first & ((1u << (7 - more)) - 1), more};
        while (at < bytes.size() && out.rest.missing > 0) {
            take(out.rest);
        }
        if (out.rest.missing == 0) {
            out.characters.push_back(out.rest.bits);
        }
    }
    return out;
}

}  // namespace bankml::grammar
