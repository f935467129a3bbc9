/* Threads log while the sink is replaced, and what the replaced one used is freed at once: under the thread sanitizer.
 * Every message must reach one sink, whole. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bankml.h"

enum { THREADS = 4, MESSAGES = 2000, CHANGES = 500 };

struct counter {
    atomic_int messages;
    char text[16];
};

static atomic_int total, running = THREADS, within;

static void count(int level, const char *msg, size_t len, void *user) {
    struct counter *const counter = user;
    if (strcmp(counter->text, "alive") != 0 || strlen(msg) != len || msg[0] != "abcd"[level]) abort();
    ++counter->messages;
    if (len % 7 == 0) {
        ++within;
        bankml_log(level, "%.*s", 1, msg); /* from within a sink */
    }
}

static struct counter *counter(void) {
    struct counter *const made = calloc(1, sizeof *made);
    strcpy(made->text, "alive");
    return made;
}

static void *logging(void *argument) {
    const int level = (int)(size_t)argument;
    for (int i = 0; i < MESSAGES; ++i) bankml_log(level, "%c%*d", "abcd"[level], i % 50 + 1, i % 10);
    --running;
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    struct counter *now = counter();
    bankml_set_log(count, now);
    for (size_t i = 0; i < THREADS; ++i) pthread_create(&threads[i], NULL, logging, (void *)i);
    for (int i = 0; i < CHANGES || running != 0; ++i) {
        struct counter *const next = counter();
        bankml_set_log(count, next);
        total += now->messages;
        memset(now, 'x', sizeof *now);
        free(now);
        now = next;
    }
    for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
    bankml_set_log(NULL, NULL);
    total += now->messages;
    free(now);
    printf("%d of %d\n", (int)total, THREADS * MESSAGES + (int)within);
    return total != THREADS * MESSAGES + within;
}
