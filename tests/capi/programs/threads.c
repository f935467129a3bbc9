/* threads MODEL FORK: many threads on two handles, callbacks that call the library, and a handle closed by another thread
 * than the one that opened it. Answers must not depend on any of it. */
#include <bankml.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 6
#define ROUNDS 3

static const char *request = "{\"messages\": [{\"role\": \"user\", \"content\": \"a b c\"}], \"max_tokens\": 12,"
                             " \"temperature\": 0, \"cache_prompt\": false}";
static char expected[4096];

struct text {
    char bytes[4096];
    size_t length;
    bankml_t *other;
    bankml_t *own;
    pthread_t caller;
};

static int collect(const char *piece, size_t len, void *user) {
    struct text *text = user;
    if (!pthread_equal(pthread_self(), text->caller) || bankml_version()[0] == '\0') abort();
    memcpy(text->bytes + text->length, piece, len + 1);
    text->length += len;
    bankml_log(BANKML_LOG_DEBUG, "%zu bytes", len);
    if (text->own != NULL && bankml_chat(text->own, request, NULL, NULL, NULL) != BANKML_E_ARG) abort();
    if (text->other != NULL && text->length < 4) {
        char *result = NULL;
        if (bankml_chat(text->other, request, NULL, NULL, &result) != BANKML_OK) abort();
        bankml_free(result);
    }
    return 1;
}

static void ask(bankml_t *model, bankml_t *other, struct text *text) {
    memset(text, 0, sizeof *text);
    text->other = other;
    text->own = other != NULL ? model : NULL;
    text->caller = pthread_self();
    if (bankml_chat(model, request, collect, text, NULL) != BANKML_OK) abort();
}

static bankml_t *handles[2];

static void *work(void *number) {
    struct text text;
    for (int i = 0; i < ROUNDS; ++i) {
        ask(handles[((size_t)number + (size_t)i) % 2], NULL, &text);
        if (strcmp(text.bytes, expected) != 0) abort();
    }
    return NULL;
}

static void *open_one(void *where) {
    char **argv = where, *reason = NULL;
    return bankml_open(argv[1], argv[2], 512, &reason);
}

static void quiet(int level, const char *msg, size_t len, void *user) { (void)level, (void)msg, (void)len, (void)user; }

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    struct text text;
    if (argc != 3) return 1;
    bankml_set_log(quiet, NULL);
    for (size_t i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, open_one, argv);
    for (size_t i = 0; i < 2; ++i) {
        void *opened = NULL;
        pthread_join(threads[i], &opened);
        handles[i] = opened;
        if (handles[i] == NULL) return 2;
    }
    ask(handles[0], NULL, &text);
    strcpy(expected, text.bytes);
    ask(handles[0], handles[1], &text);
    if (strcmp(text.bytes, expected) != 0) abort();
    for (size_t i = 0; i < THREADS; ++i) pthread_create(&threads[i], NULL, work, (void *)i);
    for (size_t i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
    for (size_t i = 0; i < 2; ++i) bankml_close(handles[i]);
    printf("%zu bytes each time\n", strlen(expected));
    return 0;
}
