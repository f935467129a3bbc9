/* ends MODEL FORK: a program whose Python ends while a thread of its own has an answer, and which starts another; and what
 * a subinterpreter is told. */
#include <Python.h>
#include <bankml.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static const char *request = "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"ignore_eos\": true,"
                             " \"max_tokens\": 100000, \"logit_bias\": [[256, false]]}";
static bankml_t *model;
static volatile int pieces = 0;

static int piece(const char *text, size_t len, void *user) {
    (void)text, (void)len, (void)user;
    ++pieces;
    return 1;
}

static void *answer(void *code) {
    *(int *)code = bankml_chat(model, request, piece, NULL, NULL);
    return NULL;
}

static void open_again(const char *const *argv) {
    char *reason = NULL;
    bankml_t *again = bankml_open(argv[1], argv[2], 256, &reason);
    printf("%s\n", again != NULL ? "opened" : reason);
    bankml_free(reason);
}

int main(int argc, char **argv) {
    int code = 1;
    pthread_t thread;
    Py_InitializeEx(0);
    model = argc == 3 ? bankml_open(argv[1], argv[2], 8192, NULL) : NULL;
    if (model == NULL) return 2;
    PyThreadState *first = PyThreadState_Get(), *other = Py_NewInterpreter();
    open_again((const char *const *)argv);
    Py_EndInterpreter(other);
    PyThreadState_Swap(first);
    Py_BEGIN_ALLOW_THREADS
    pthread_create(&thread, NULL, answer, &code);
    while (pieces == 0) usleep(1000);
    Py_END_ALLOW_THREADS
    int ended = Py_FinalizeEx();
    pthread_join(thread, NULL);
    printf("%d %d\n", ended, code);
    open_again((const char *const *)argv);
    Py_InitializeEx(0);
    open_again((const char *const *)argv);
    printf("%d\n", bankml_chat(model, request, piece, NULL, NULL));
    bankml_close(model);
    return 0;
}
