/* embedder MODEL FORK: a program with a Python of its own, which calls the library with the GIL and without, and ends its
 * Python while a handle is open. */
#include <Python.h>
#include <bankml.h>
#include <stdio.h>

static const char *request = "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"max_tokens\": 2, \"seed\": 1}";

static int piece(const char *text, size_t len, void *user) {
    (void)text, (void)len, (void)user;
    PyGILState_STATE state = PyGILState_Ensure(); /* it is free, or this would wait for ever */
    PyRun_SimpleString("pieces += 1");
    PyGILState_Release(state);
    return 1;
}

int main(int argc, char **argv) {
    Py_InitializeEx(0);
    PyRun_SimpleString("import sys; before = list(sys.path); pieces = 0; ours = 1");
    bankml_t *model = argc == 3 ? bankml_open(argv[1], argv[2], 512, NULL) : NULL;
    if (model == NULL) return 2;
    printf("%d\n", bankml_chat(model, request, piece, NULL, NULL));
    Py_BEGIN_ALLOW_THREADS
    printf("%d\n", bankml_chat(model, request, piece, NULL, NULL));
    Py_END_ALLOW_THREADS
    PyRun_SimpleString("import bankml; assert pieces > 0 and ours == 1 and sys.path[:len(before)] == before");
    printf("%s\n", Py_IsInitialized() ? "runs" : "ended");
    fflush(stdout);
    Py_FinalizeEx();
    char *result = NULL;
    printf("%d ", bankml_chat(model, request, piece, NULL, &result));
    printf("%s\n", result);
    bankml_free(result);
    bankml_close(model);
    return 0;
}
