/* host MODEL FORK: a host with a signal mask, handlers, a locale and a floating-point mode of its own; says what of them
 * the library leaves changed, and what its callbacks find changed. */
#include <bankml.h>
#include <fenv.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

static int wrong = 0;

static void on_signal(int number) { (void)number; }

static void own_manners(void) {
    struct sigaction handler;
    memset(&handler, 0, sizeof handler);
    handler.sa_handler = on_signal;
    sigaction(SIGINT, &handler, NULL);
    sigaction(SIGUSR1, &handler, NULL);
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
    setlocale(LC_ALL, "C");
    setlocale(LC_NUMERIC, "C.UTF-8");
#if defined(__SSE2__)
    _mm_setcsr(_mm_getcsr() | 0x8040); /* flush to zero, denormals are zero */
#endif
    fesetround(FE_UPWARD);
    feclearexcept(FE_ALL_EXCEPT);
    feraiseexcept(FE_DIVBYZERO);
}

static void check(int good, const char *when, const char *what) {
    if (good) return;
    printf("%s: %s\n", when, what);
    ++wrong;
}

static void look(const char *when) {
    struct sigaction handler;
    for (int number = 1; number < SIGRTMIN; ++number) {
        if (sigaction(number, NULL, &handler) != 0) continue;
        int ours = number == SIGINT || number == SIGUSR1;
        check(handler.sa_handler == (ours ? on_signal : SIG_DFL), when, "a signal's handler");
    }
    sigset_t blocked;
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    check(sigismember(&blocked, SIGUSR2) && !sigismember(&blocked, SIGINT), when, "the signal mask");
    check(strcmp(setlocale(LC_NUMERIC, NULL), "C.UTF-8") == 0, when, "LC_NUMERIC");
    check(strcmp(setlocale(LC_CTYPE, NULL), "C") == 0, when, "LC_CTYPE");
    check(fegetround() == FE_UPWARD, when, "the rounding mode");
    check(fetestexcept(FE_ALL_EXCEPT) == FE_DIVBYZERO, when, "the exception flags");
#if defined(__SSE2__)
    check((_mm_getcsr() & 0x8040) == 0x8040, when, "flushing to zero");
#endif
}

static int piece(const char *text, size_t len, void *user) {
    (void)text, (void)len;
    look("in a callback");
    ++*(int *)user;
    return 1;
}

static void message(int level, const char *text, size_t len, void *user) {
    (void)level, (void)text, (void)len;
    look("in the sink");
    ++*(int *)user;
}

int main(int argc, char **argv) {
    int pieces = 0, messages = 0;
    char *reason = NULL, *result = NULL;
    own_manners();
    look("at first");
    bankml_set_log(message, &messages);
    bankml_t *model = bankml_open(argv[1], argv[argc - 1], 512, &reason);
    if (model == NULL) return 2;
    look("after bankml_open");
    const char *request = "{\"messages\": [{\"role\": \"user\", \"content\": \"a b\"}], \"max_tokens\": 8, \"seed\": 3}";
    int code = bankml_chat(model, request, piece, &pieces, &result);
    look("after bankml_chat");
    check(code == BANKML_OK && pieces > 0 && messages > 0, "bankml_chat", result);
    bankml_free(result);
    bankml_close(model);
    look("after bankml_close");
    check(bankml_open("nowhere", "nowhere", 0, &reason) == NULL, "bankml_open", "an answer");
    look("after a refusal");
    bankml_free(reason);
    printf("%d pieces, %d messages, %d wrong\n", pieces, messages, wrong);
    return wrong != 0;
}
