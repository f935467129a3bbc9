// The entry points that answer: each leaves the host as it was, and turns whatever goes wrong into a code and a sentence.
#include "bankml.h"

#include <cxxabi.h>

#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>

#include "capi/host.h"
#include "capi/log.h"
#include "capi/python.h"

struct bankml_handle {
    PyObject *python;  // a bankml.capi.handle.Handle, owned
};

namespace bankml::capi {
namespace {

constexpr const char *kEnvironment[] = {"BANKML_THREADS", "BANKML_LLAMA_THREADS", "BANKML_CACHE_TYPE",
                                        "BANKML_CACHE_RAM"};
constexpr const char *kInterrupted = "interrupted";

char *copy(std::string_view text) {
    char *made = static_cast<char *>(std::malloc(text.size() + 1));
    if (made == nullptr) return nullptr;
    std::memcpy(made, text.data(), text.size());
    made[text.size()] = '\0';
    return made;
}

// The variables that a handle reads, as they are now: [name, value, name, value, …]. Python's own os.environ is as old as
// the interpreter.
Owned environment() {
    Owned list(py.PyList_New(0));
    for (const char *name : kEnvironment) {
        const char *value = std::getenv(name);
        if (!list || value == nullptr) continue;
        for (const char *text : {name, value}) {
            const Owned one = text_of(text);
            if (!one || py.PyList_Append(list.get(), one.get()) != 0) return Owned(nullptr);
        }
    }
    return list;
}

// The new handle; or nullptr and the reason.
bankml_t *open(const char *model_path, const char *fork_json_path, std::uint32_t n_ctx, std::string &reason) {
    const Arithmetic arithmetic;
    std::string why = "model_path and fork_json_path must both be given";
    const Visit visit;
    if (model_path != nullptr && fork_json_path != nullptr && start_python(why) && visit.welcome(why)) {
        const Gil gil;
        const Owned module = front(why);
        // (handle, b""), or (None, reason) when Python has refused, and logged it.
        const Owned answer = call(attribute(module.get(), "open_handle"), text_of(model_path), text_of(fork_json_path),
                                  Owned(py.PyLong_FromUnsignedLong(n_ctx)), environment(), ending_function(),
                                  quietly_function());
        std::string_view refusal;
        if (answer && view(py.PyTuple_GetItem(answer.get(), 1), refusal)) {
            reason = refusal;
            if (!reason.empty()) return nullptr;
            auto *opened = new bankml_handle{py.PyTuple_GetItem(answer.get(), 0)};
            py.Py_IncRef(opened->python);
            return opened;
        }
        if (module) why = interrupted() ? kInterrupted : raised();
    }
    reason = "error: " + why;
    const HostsTurn turn;
    log_message(BANKML_LOG_ERROR, why);
    return nullptr;
}

struct Callback {
    bankml_piece_cb call;
    void *user;
};

// To the host. What it must not do, it must not do to the middle of Python: an exception or the end of its thread ends the
// process here.
int give(const Callback &to, std::string_view bytes) noexcept {
    const HostsTurn turn;
    try {
        return to.call(bytes.data(), bytes.size(), to.user);
    } catch (abi::__forced_unwind &) {
        stay_out();  // Python, which has ended, ended a thread that came back to it for the host's callback
        std::terminate();
    } catch (...) {
        std::terminate();  // here, where it can still say what was thrown
    }
}

// piece(text): bytes to the host; False when it wants no more. The capsule holds a Callback, on the stack of the thread
// that waits for the answer.
PyObject *piece(PyObject *capsule, PyObject *text) {
    const auto *to = static_cast<const Callback *>(py.PyCapsule_GetPointer(capsule, nullptr));
    std::string_view bytes;
    if (to == nullptr || !view(text, bytes)) return nullptr;
    int more = 0;
    {
        const WithoutGil without;
        more = give(*to, bytes);
    }
    return py.PyBool_FromLong(more != 0);
}

PyMethodDef piece_method = {"piece", piece, METH_O, "A piece of the answer, to the host's callback."};

// One of the codes, and the result; or, for E_ENGINE and E_PANIC here, a sentence.
struct Answered {
    int code;
    bool is_json;
    std::string text;
};

Answered chat(const bankml_t &h, const char *request, Callback callback) {
    const Arithmetic arithmetic;
    std::string why;
    const Visit visit;
    if (!visit.welcome(why)) return {BANKML_E_ENGINE, false, why};
    const Gil gil;
    const Owned method = attribute(h.python, "chat"), body = bytes_of(request);
    const Owned capsule(py.PyCapsule_New(&callback, nullptr, nullptr));
    // chat(request, piece) is (code, result); without a callback there is no piece.
    const Owned answer = callback.call == nullptr ? call(method, body)
                         : capsule                ? call(method, body, callable(piece_method, capsule.get()))
                                                  : Owned(nullptr);
    if (!answer && interrupted()) return {BANKML_E_ENGINE, false, kInterrupted};
    std::string_view json;
    if (!answer || !view(py.PyTuple_GetItem(answer.get(), 1), json)) return {BANKML_E_PANIC, false, raised()};
    return {int(py.PyLong_AsLong(py.PyTuple_GetItem(answer.get(), 0))), true, std::string(json)};
}

void close(bankml_t *h) {
    const Arithmetic arithmetic;
    const Visit visit;
    if (std::string why; visit.welcome(why)) {
        const Gil gil;
        if (!call(attribute(h->python, "close"))) py.PyErr_Clear();
        py.Py_DecRef(h->python);
    }
    delete h;
}

std::string error_json(int code, std::string_view message) {
    std::string text = "{\"error\": {\"code\": " + std::to_string(code) + ", \"message\": \"";
    for (const char c : message) {
        if (c == '"' || c == '\\') text += '\\';
        text += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
    return text + "\"}}";
}

// What bankml_chat answers without asking Python.
int refuse(int code, std::string_view message, char **result_json) {
    log_message(BANKML_LOG_ERROR, message);
    if (result_json != nullptr) *result_json = copy(error_json(code, message));
    return code;
}

constexpr const char *kNoMemory = "error: out of memory";

}  // namespace
}  // namespace bankml::capi

using namespace bankml::capi;

extern "C" const char *bankml_version(void) { return BANKML_VERSION; }

extern "C" bankml_t *bankml_open(const char *model_path, const char *fork_json_path, uint32_t n_ctx, char **err) {
    if (err != nullptr) *err = nullptr;
    try {
        std::string reason;
        bankml_t *opened = open(model_path, fork_json_path, n_ctx, reason);
        if (opened == nullptr && err != nullptr) *err = copy(reason);
        return opened;
    } catch (const std::exception &) {
        if (err != nullptr) *err = copy(kNoMemory);
        return nullptr;
    }
}

extern "C" int bankml_chat(bankml_t *h, const char *request_json, bankml_piece_cb cb, void *user, char **result_json) {
    if (result_json != nullptr) *result_json = nullptr;
    try {
        if (h == nullptr) return refuse(BANKML_E_ARG, "the handle is NULL", result_json);
        if (request_json == nullptr) return refuse(BANKML_E_ARG, "the request is NULL", result_json);
        const Answered answered = chat(*h, request_json, {cb, user});
        if (!answered.is_json) return refuse(answered.code, answered.text, result_json);
        if (result_json != nullptr) *result_json = copy(answered.text);
        return answered.code;
    } catch (const std::exception &) {
        return BANKML_E_ENGINE;
    }
}

extern "C" void bankml_close(bankml_t *h) {
    if (h != nullptr) close(h);
}

extern "C" void bankml_free(char *s) { std::free(s); }
