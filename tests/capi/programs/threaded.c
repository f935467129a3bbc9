/* threaded MODEL FORK: a host with a timer, and another thread that sets handlers and the locale while a model opens; says
 * on whose threads its handler ran, and what was undone. */
#include <bankml.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static __thread int hosts = 0; /* a thread of the host's own */
static volatile sig_atomic_t strangers = 0, done = 0;
static int undone = 0;

static void on_timer(int number) {
    (void)number;
    strangers += !hosts;
}

static void *change(void *user) {
    (void)user;
    hosts = 1;
    for (int i = 0; !done; ++i) {
        const char *locale = i % 2 ? "C.UTF-8" : "C";
        struct sigaction set, now;
        memset(&set, 0, sizeof set);
        set.sa_handler = i % 2 ? on_timer : SIG_IGN;
        sigaction(SIGUSR1, &set, NULL);
        setlocale(LC_NUMERIC, locale);
        usleep(2000);
        sigaction(SIGUSR1, NULL, &now);
        undone += now.sa_handler != set.sa_handler || strcmp(setlocale(LC_NUMERIC, NULL), locale) != 0;
    }
    return NULL;
}

int main(int argc, char **argv) {
    hosts = 1;
    pthread_t thread;
    struct sigaction handler;
    memset(&handler, 0, sizeof handler);
    handler.sa_handler = on_timer;
    handler.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &handler, NULL);
    pthread_create(&thread, NULL, change, NULL);
    struct itimerval every = {{0, 500}, {0, 500}};
    setitimer(ITIMER_REAL, &every, NULL);
    bankml_t *model = argc == 3 ? bankml_open(argv[1], argv[2], 256, NULL) : NULL;
    if (model == NULL) return 2;
    int code = bankml_chat(model, "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"max_tokens\": 8}", NULL, NULL, NULL);
    done = 1;
    pthread_join(thread, NULL);
    bankml_close(model);
    printf("%d, %d on threads of the library, %d undone\n", code, (int)strangers, undone);
    return 0;
}
