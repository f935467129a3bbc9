// Python, found and started: its functions, and one exception, by name, looked up at run time.
//
// Nothing is linked to libpython. It is loaded when the first model opens, globally, for the packages' own modules look for
// it there; a program that embeds Python already has it, and the one it has is used.
#pragma once
#include <Python.h>

#include <string>
#include <string_view>
#include <utility>

namespace bankml::capi {

#define BANKML_PYTHON_FUNCTIONS(X)                                                                                       \
    X(Py_GetVersion)                                                                                                     \
    X(Py_IsInitialized)                                                                                                  \
    X(PyPreConfig_InitIsolatedConfig)                                                                                    \
    X(Py_PreInitialize)                                                                                                  \
    X(PyConfig_InitIsolatedConfig)                                                                                       \
    X(PyConfig_SetBytesString)                                                                                           \
    X(PyConfig_Clear)                                                                                                    \
    X(Py_InitializeFromConfig)                                                                                           \
    X(PyStatus_Exception)                                                                                                \
    X(PyEval_SaveThread)                                                                                                 \
    X(PyEval_RestoreThread)                                                                                              \
    X(PyGILState_Check)                                                                                                  \
    X(PyGILState_GetThisThreadState)                                                                                     \
    X(_PyThreadState_UncheckedGet)                                                                                       \
    X(PyThreadState_GetInterpreter)                                                                                      \
    X(PyInterpreterState_Main)                                                                                           \
    X(PyGILState_Ensure)                                                                                                 \
    X(PyGILState_Release)                                                                                                \
    X(PyImport_ImportModule)                                                                                             \
    X(PyObject_GetAttrString)                                                                                            \
    X(PyObject_CallFunctionObjArgs)                                                                                      \
    X(PyObject_Str)                                                                                                      \
    X(PyErr_Fetch)                                                                                                       \
    X(PyErr_NormalizeException)                                                                                          \
    X(PyErr_Clear)                                                                                                       \
    X(PyErr_ExceptionMatches)                                                                                            \
    X(PyErr_SetInterrupt)                                                                                                \
    X(PyExc_KeyboardInterrupt)                                                                                           \
    X(PyBytes_FromStringAndSize)                                                                                         \
    X(PyBytes_AsStringAndSize)                                                                                           \
    X(PyUnicode_DecodeFSDefault)                                                                                         \
    X(PyUnicode_AsUTF8AndSize)                                                                                           \
    X(PyLong_FromUnsignedLong)                                                                                           \
    X(PyLong_AsLong)                                                                                                     \
    X(PyBool_FromLong)                                                                                                   \
    X(PyTuple_GetItem)                                                                                                   \
    X(PyList_New)                                                                                                        \
    X(PyList_Append)                                                                                                     \
    X(PyCapsule_New)                                                                                                     \
    X(PyCapsule_GetPointer)                                                                                              \
    X(PyCMethod_New)                                                                                                     \
    X(Py_IncRef)                                                                                                         \
    X(Py_DecRef)

struct Python {
#define BANKML_MEMBER(name) decltype(&::name) name = nullptr;
    BANKML_PYTHON_FUNCTIONS(BANKML_MEMBER)
#undef BANKML_MEMBER
};

// The functions; called after start_python has said yes, and all but the first few of them by a holder of the GIL.
extern const Python &py;

// Starts the interpreter if nobody has. False, and `why`, when there is none.
bool start_python(std::string &why);

// A call of the host's that is inside Python. An interpreter that ends waits for those that are (front), and from then on
// nobody comes in: threads that Python ends are ended in the midst of C++.
class Visit {
  public:
    Visit();
    ~Visit();
    Visit(const Visit &) = delete;
    Visit &operator=(const Visit &) = delete;

    // False, and `why`, when there is no Python to call: it has ended, or it is one that cannot be called from here.
    bool welcome(std::string &why) const;
};

// Holds the GIL.
class Gil {
  public:
    Gil() : state_(py.PyGILState_Ensure()) {}
    ~Gil() { py.PyGILState_Release(state_); }
    Gil(const Gil &) = delete;
    Gil &operator=(const Gil &) = delete;

  private:
    PyGILState_STATE state_;
};

// Does not return when an interpreter has ended without waiting any longer for this thread: it must not be asked for the GIL.
void stay_out();

// Lets the GIL go for a while.
class WithoutGil {
  public:
    WithoutGil() : thread_(py.PyEval_SaveThread()) {}
    ~WithoutGil() {
        stay_out();
        py.PyEval_RestoreThread(thread_);
    }
    WithoutGil(const WithoutGil &) = delete;
    WithoutGil &operator=(const WithoutGil &) = delete;

  private:
    PyThreadState *thread_;
};

// A reference that is given back; may hold nullptr.
class Owned {
  public:
    explicit Owned(PyObject *object) : object_(object) {}
    Owned(Owned &&other) noexcept : object_(other.release()) {}
    ~Owned() { py.Py_DecRef(object_); }
    Owned &operator=(Owned &&other) noexcept {
        std::swap(object_, other.object_);
        return *this;
    }

    PyObject *get() const { return object_; }
    PyObject *release() { return std::exchange(object_, nullptr); }
    explicit operator bool() const { return object_ != nullptr; }

  private:
    PyObject *object_;
};

// function(arguments...), or nullptr when one of them is, or when it raises.
template <class... Arguments>
Owned call(const Owned &function, const Arguments &...arguments) {
    if (!function || (... || !arguments)) return Owned(nullptr);
    return Owned(py.PyObject_CallFunctionObjArgs(function.get(), arguments.get()..., nullptr));
}

// A function of ours for Python to call; `self` is what it gets as its own.
inline Owned callable(PyMethodDef &method, PyObject *self = nullptr) {
    return Owned(py.PyCMethod_New(&method, self, nullptr, nullptr));
}

inline Owned attribute(PyObject *object, const char *name) {
    return Owned(object != nullptr ? py.PyObject_GetAttrString(object, name) : nullptr);
}

// A str of the host's bytes, as file names are made; a bytes.
inline Owned text_of(const char *bytes) { return Owned(py.PyUnicode_DecodeFSDefault(bytes)); }
inline Owned bytes_of(std::string_view bytes) {
    return Owned(py.PyBytes_FromStringAndSize(bytes.data(), Py_ssize_t(bytes.size())));
}

// What a bytes holds, with a NUL behind it and for as long as it lives; false, and something raised, when it is none.
bool view(PyObject *object, std::string_view &bytes);

// What was raised, as text; nothing is raised any more.
std::string raised();

// Whether what was raised is the Ctrl-C of a program that embeds Python. It is no more, and raised again for that program
// when the call has returned.
bool interrupted();

// The module `bankml.capi.front`, its packages found and its log joined to ours; false, and `why`, when it cannot be had.
Owned front(std::string &why);

// What `open_handle` is given: whether Python is ending, and how numpy is to be loaded and threads are to be begun.
Owned ending_function();
Owned quietly_function();

}  // namespace bankml::capi
