#include "capi/python.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <thread>

#include "capi/home.h"
#include "capi/host.h"
#include "capi/log.h"

namespace bankml::capi {
namespace {

constexpr const char *kFront = "bankml.capi.front";

constexpr const char *kEnded = "the program has ended its Python";
constexpr std::chrono::seconds kPatience{10};  // for callbacks that do not return
constexpr std::chrono::milliseconds kLook{2};

std::mutex starting;  // of the four that follow; whoever holds it never waits for the GIL
Python functions;
int (*is_finalizing)() = nullptr;  // by the one or the other name, as the version has it
bool known = false;
std::string broken;  // why Python did not start; it cannot be tried twice

// Nothing here has a destructor that does anything: a thread may still call while the process ends.
std::atomic<bool> ours = false;   // the interpreter is one that was started here
std::atomic<bool> ended = false;  // the interpreter that was called is ending, or has ended: none is called any more
std::atomic<bool> gone = false;   // and it waits for nobody now
std::atomic<unsigned> visits = 0;
bool awaited = false;  // the interpreter will call leave(); for who holds the GIL
thread_local unsigned visits_here = 0;

bool look_up(void *library, std::string &why) {
#define BANKML_LOOK_UP(name)                                                                                             \
    functions.name = reinterpret_cast<decltype(functions.name)>(dlsym(library, #name));                                  \
    if (functions.name == nullptr) {                                                                                     \
        why = "the Python in this process has no " #name;                                                                \
        return false;                                                                                                    \
    }
    BANKML_PYTHON_FUNCTIONS(BANKML_LOOK_UP)
#undef BANKML_LOOK_UP
    for (const char *name : {"Py_IsFinalizing", "_Py_IsFinalizing"}) {
        if (void *found = dlsym(library, name)) is_finalizing = reinterpret_cast<int (*)()>(found);
    }
    const std::string_view version = py.Py_GetVersion();
    if (!version.starts_with(BANKML_PYTHON ".")) {
        why = "this program embeds Python " + std::string(version.substr(0, version.find(' '))) +
              ", and this bankml was built for Python " BANKML_PYTHON;
        return false;
    }
    return true;
}

// The Python this process has, or the packages' own, loaded now.
bool find_functions(const Home &home, std::string &why) {
    if (dlsym(RTLD_DEFAULT, "Py_IsInitialized") != nullptr) return look_up(RTLD_DEFAULT, why);
    // Loaded already but for itself alone, as a plug-in is, it becomes global; only then is it looked for in files.
    for (const int how : {RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD, RTLD_NOW | RTLD_GLOBAL}) {
        for (const std::string &library : home.libraries) {
            if (void *found = dlopen(library.c_str(), how)) return look_up(found, why);
        }
    }
    why = "there is no shared library of Python " BANKML_PYTHON " for " + home.packages + " (" + home.libraries.front() +
          "): its Python must be one built with --enable-shared";
    return false;
}

bool failed(const PyStatus &status, std::string &why) {
    if (!py.PyStatus_Exception(status)) return false;
    why = std::string("Python does not start: ") + (status.err_msg != nullptr ? status.err_msg : "no reason given");
    return true;
}

// Isolated: no variable of the environment, no script, no current folder has a say in what is imported; no signal handler,
// no locale, no standard stream is touched. UTF-8 whatever the locale is.
bool start(const Home &home, std::string &why) {
    PyPreConfig before;
    py.PyPreConfig_InitIsolatedConfig(&before);
    before.utf8_mode = 1;
    // The one variable that is read after all: memory checkers set it, to see every block.
    const char *allocator = std::getenv("PYTHONMALLOC");
    if (allocator != nullptr && std::strcmp(allocator, "malloc") == 0) before.allocator = PYMEM_ALLOCATOR_MALLOC;
    if (failed(py.Py_PreInitialize(&before), why)) return false;

    PyConfig config;
    py.PyConfig_InitIsolatedConfig(&config);
    config.install_signal_handlers = 0;
    PyStatus status = py.PyConfig_SetBytesString(&config, &config.executable, home.executable.c_str());
    if (!py.PyStatus_Exception(status)) status = py.Py_InitializeFromConfig(&config);
    py.PyConfig_Clear(&config);
    if (failed(status, why)) return false;
    py.PyEval_SaveThread();  // starting takes the GIL, and leaves it to this thread
    return true;
}

// say(level, message): a message of the library's own, bytes, to the log.
PyObject *say(PyObject *, PyObject *arguments) {
    PyObject *level = py.PyTuple_GetItem(arguments, 0), *message = py.PyTuple_GetItem(arguments, 1);
    std::string_view text;
    if (level == nullptr || message == nullptr || !view(message, text)) return nullptr;
    const int number = int(py.PyLong_AsLong(level));
    {
        const WithoutGil without;
        const HostsTurn turn;
        log_message(number, text);
    }
    return py.PyBool_FromLong(1);
}

// leave(): Python is ending. Answers end soon, for they ask ending(); callbacks are waited for.
PyObject *leave(PyObject *, PyObject *) {
    ended = true;
    {
        const WithoutGil without;
        const auto until = std::chrono::steady_clock::now() + kPatience;
        while (visits > visits_here && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(kLook);
    }
    gone = true;
    return py.PyBool_FromLong(1);
}

PyObject *ending(PyObject *, PyObject *) { return py.PyBool_FromLong(ended); }

// quietly(function): its result, having called it with Quiet about. The host's Python may want OpenBLAS for itself.
PyObject *quietly(PyObject *, PyObject *function) {
    const Quiet quiet(ours);
    return py.PyObject_CallFunctionObjArgs(function, nullptr);
}

PyMethodDef leave_method = {"leave", leave, METH_NOARGS, "Returns when no call of the host's is inside Python."};
PyMethodDef ending_method = {"ending", ending, METH_NOARGS, "Whether Python is ending."};
PyMethodDef quietly_method = {"quietly", quietly, METH_O, "Calls a function that loads numpy, or begins a thread."};
PyMethodDef say_method = {"say", say, METH_VARARGS, "A message of bankML's own, to the log that bankml_set_log chose."};

// Whether this thread holds the GIL for another interpreter than the first: waiting for that one's would be for ever.
bool inside_another() {
    PyThreadState *now = py._PyThreadState_UncheckedGet();
    // Where there are no other interpreters, the state that Python knows of a thread is the one it has when it has any.
    if (now == nullptr || !py.PyGILState_Check() || now == py.PyGILState_GetThisThreadState()) return false;
    return now->thread_id == static_cast<unsigned long>(pthread_self()) && py.PyThreadState_GetInterpreter(now) != py.PyInterpreterState_Main();
}

Owned import(const char *name) { return Owned(py.PyImport_ImportModule(name)); }

// Has an interpreter that ends wait for who is inside. False when it cannot be told so.
bool await_visits() {
    if (!awaited) awaited = bool(call(attribute(import("atexit").get(), "register"), callable(leave_method)));
    return awaited;
}

// Makes what lies in `folder` importable, .pth files (an editable install is one) included.
bool add_packages(const std::string &folder) {
    const bool added = bool(call(attribute(import("site").get(), "addsitedir"), text_of(folder.c_str())));
    if (!added) py.PyErr_Clear();
    return added;
}

}  // namespace

const Python &py = functions;

Visit::Visit() {
    ++visits;
    ++visits_here;
}

Visit::~Visit() {
    --visits_here;
    --visits;
}

bool Visit::welcome(std::string &why) const {
    if (ended || !py.Py_IsInitialized()) why = kEnded;
    else if (inside_another()) why = "the call came with the GIL of a subinterpreter held: release it first";
    else return true;
    return false;
}

void stay_out() {
    while (gone) std::this_thread::sleep_for(kPatience);
}

bool start_python(std::string &why) {
    const std::lock_guard lock(starting);
    Home home;
    if (!known) {
        if (!find_home(home, why) || !find_functions(home, why)) return false;
        known = true;
    }
    if (ended || (is_finalizing != nullptr && is_finalizing())) {
        why = kEnded;
        return false;
    }
    if (py.Py_IsInitialized()) return true;
    if (broken.empty()) {
        if (home.packages.empty() && !find_home(home, why)) return false;
        ours = start(home, broken);
        if (ours) return true;
    }
    why = broken;
    return false;
}

bool view(PyObject *object, std::string_view &bytes) {
    char *text = nullptr;
    Py_ssize_t length = 0;
    if (object == nullptr || py.PyBytes_AsStringAndSize(object, &text, &length) != 0) return false;
    bytes = {text, std::size_t(length)};
    return true;
}

std::string raised() {
    PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
    py.PyErr_Fetch(&type, &value, &traceback);
    py.PyErr_NormalizeException(&type, &value, &traceback);
    const Owned owned[] = {Owned(type), Owned(value), Owned(traceback)};
    std::string found;
    const Owned text(value != nullptr ? py.PyObject_Str(value) : nullptr), name = attribute(type, "__name__");
    for (const Owned *one : {&text, &name}) {  // a MemoryError says no more than its name
        Py_ssize_t length = 0;
        const char *utf8 = *one ? py.PyUnicode_AsUTF8AndSize(one->get(), &length) : nullptr;
        if (found.empty() && utf8 != nullptr) found.assign(utf8, std::size_t(length));
    }
    if (found.empty()) found = "no reason given";
    py.PyErr_Clear();
    return found;
}

bool interrupted() {
    if (!py.PyErr_ExceptionMatches(*py.PyExc_KeyboardInterrupt)) return false;
    py.PyErr_Clear();
    py.PyErr_SetInterrupt();
    return true;
}

Owned front(std::string &why) {
    if (!await_visits()) {
        why = raised();
        return Owned(nullptr);
    }
    Owned module = import(kFront);
    if (!module) {
        Home home;
        why = "bankml cannot be imported: " + raised();
        if (!find_home(home, why) || !add_packages(home.packages)) return Owned(nullptr);
        module = import(kFront);
        if (!module) why = "bankml cannot be imported: " + raised();
    }
    if (module && !call(attribute(module.get(), "attach"), text_of(BANKML_VERSION), callable(say_method))) {
        why = raised();
        return Owned(nullptr);
    }
    return module;
}

Owned ending_function() { return callable(ending_method); }

Owned quietly_function() { return callable(quietly_method); }

}  // namespace bankml::capi
