// Sends a chat request to a verified model: streams the answer to stdout, prints the receipt's hashes to stderr.
//
//   c++ -std=c++17 chat.cpp $(bankml capi --cflags --libs) -o chat
//   ./chat MODEL.gguf MODEL.gguf.FORK.json "What is a receipt?"
#include <bankml.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

struct Free {
    void operator()(char *text) const { bankml_free(text); }
    void operator()(bankml_t *model) const { bankml_close(model); }
};
using Text = std::unique_ptr<char, Free>;
using Model = std::unique_ptr<bankml_t, Free>;

Model open_model(const char *path, const char *fork) {
    char *err = nullptr;
    Model model(bankml_open(path, fork, 0, &err));
    const Text reason(err);
    if (!model) throw std::runtime_error(reason ? reason.get() : "out of memory");
    return model;
}

// Calls `on_piece` with each piece of the answer; it returns whether to continue and must not throw. Returns the
// response's JSON.
template <class OnPiece>
std::string chat(const Model &model, const std::string &request, OnPiece on_piece) {
    const bankml_piece_cb call = [](const char *piece, std::size_t len, void *user) {
        return (*static_cast<OnPiece *>(user))(std::string_view(piece, len)) ? 1 : 0;
    };
    char *json = nullptr;
    const int code = bankml_chat(model.get(), request.c_str(), call, &on_piece, &json);
    const Text owned(json);
    const std::string result = json != nullptr ? json : "out of memory";
    if (code != BANKML_OK) throw std::runtime_error("bankml_chat returned " + std::to_string(code) + ": " + result);
    return result;
}

std::string quoted(std::string_view text) {
    std::string json = "\"";
    for (const char c : text) {
        char escaped[8];
        if (static_cast<unsigned char>(c) < 0x20) json.append(escaped, std::snprintf(escaped, sizeof escaped, "\\u%04x", c));
        else if (c == '"' || c == '\\') json.append({'\\', c});
        else json += c;
    }
    return json + '"';
}

// A string of the receipt. A quotation mark inside an answer's text is escaped, so that no answer can forge a key.
std::string receipt(const std::string &result, const std::string &key) {
    const std::string before = "\"" + key + "\": \"";
    const std::size_t begin = result.find(before);
    if (begin == result.npos) throw std::runtime_error("no " + key + " in " + result);
    const std::size_t value = begin + before.size();
    return result.substr(value, result.find('"', value) - value);
}

}  // namespace

int main(int argc, char **argv) {
    if (argc != 4) {
        std::fprintf(stderr, "usage: %s MODEL.gguf FORK.json QUESTION\n", argv[0]);
        return 2;
    }
    try {
        const Model model = open_model(argv[1], argv[2]);
        const std::string request =
            R"({"max_tokens": 256, "messages": [{"role": "user", "content": )" + quoted(argv[3]) + "}]}";
        const std::string result = chat(model, request, [](std::string_view piece) {
            return std::fwrite(piece.data(), 1, piece.size(), stdout) == piece.size() && std::fflush(stdout) == 0;
        });
        std::puts("");
        for (const char *key : {"model_sha256", "request_sha256", "response_sha256"}) {
            std::fprintf(stderr, "%s %s\n", key, receipt(result, key).c_str());
        }
        return 0;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
