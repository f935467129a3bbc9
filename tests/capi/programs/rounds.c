/* rounds MODEL FORK N...: opens, asks and closes, refusals among it; after as many rounds as each number says, prints how
 * many bytes malloc has given away by then. */
#include <bankml.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

static int piece(const char *text, size_t len, void *user) {
    (void)text, (void)len;
    return ++*(int *)user < 5;
}

static void quiet(int level, const char *msg, size_t len, void *user) { (void)level, (void)msg, (void)len, (void)user; }

static int one_round(const char *path, const char *fork) {
    char *reason = NULL, *result = NULL;
    int pieces = 0;
    if (bankml_open(path, path, 256, &reason) != NULL) return 1;
    bankml_free(reason);
    bankml_t *model = bankml_open(path, fork, 256, NULL);
    if (model == NULL) return 2;
    if (bankml_chat(model, "{\"messages\": 3}", piece, &pieces, &result) != BANKML_E_REQUEST) return 3;
    bankml_free(result);
    const char *request = "{\"messages\": [{\"role\": \"user\", \"content\": \"a b\"}], \"seed\": 2, \"max_tokens\": 6,"
                          " \"logprobs\": true, \"response_format\": {\"type\": \"json_object\"}}";
    if (bankml_chat(model, request, piece, &pieces, &result) != BANKML_OK) return 4;
    bankml_free(result);
    bankml_close(model);
    return 0;
}

static size_t in_use(void) {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
#else
    return 0;
#endif
}

int main(int argc, char **argv) {
    bankml_set_log(quiet, NULL);
    for (int done = 0, i = 3; i < argc; ++i) {
        for (; done < atoi(argv[i]); ++done) {
            const int wrong = one_round(argv[1], argv[2]);
            if (wrong != 0) return wrong;
        }
        printf("%zu\n", in_use());
    }
    return 0;
}
