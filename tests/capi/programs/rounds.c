/* rounds MODEL FORK N: opens, asks and closes N times, refusals among it; prints nothing. For memory checkers. */
#include <bankml.h>
#include <stdlib.h>

static int piece(const char *text, size_t len, void *user) {
    (void)text, (void)len;
    return ++*(int *)user < 5;
}

static void quiet(int level, const char *msg, size_t len, void *user) { (void)level, (void)msg, (void)len, (void)user; }

int main(int argc, char **argv) {
    bankml_set_log(quiet, NULL);
    for (int i = 0; i < atoi(argv[argc - 1]); ++i) {
        char *reason = NULL, *result = NULL;
        int pieces = 0;
        if (bankml_open(argv[1], argv[1], 256, &reason) != NULL) return 1;
        bankml_free(reason);
        bankml_t *model = bankml_open(argv[1], argv[2], 256, NULL);
        if (model == NULL) return 2;
        if (bankml_chat(model, "{\"messages\": 3}", piece, &pieces, &result) != BANKML_E_REQUEST) return 3;
        bankml_free(result);
        const char *request = "{\"messages\": [{\"role\": \"user\", \"content\": \"a b\"}], \"seed\": 2, \"max_tokens\": 6,"
                              " \"logprobs\": true, \"response_format\": {\"type\": \"json_object\"}}";
        if (bankml_chat(model, request, piece, &pieces, &result) != BANKML_OK) return 4;
        bankml_free(result);
        bankml_close(model);
    }
    return 0;
}
