/* codes MODEL FORK CHANGE: every code that a host can bring about, with its result; CHANGE is a command that changes the
 * model file. NULL where NULL is allowed. */
#define _POSIX_C_SOURCE 200809L
#include <bankml.h>
#include <stdio.h>
#include <stdlib.h>

static void told(bankml_t *model, const char *request) {
    char *result = (char *)"untouched";
    int code = bankml_chat(model, request, NULL, NULL, &result);
    printf("%d %s\n", code, result);
    bankml_free(result);
    if (bankml_chat(model, request, NULL, NULL, NULL) != code) abort();
}

int main(int argc, char **argv) {
    char *reason = NULL;
    if (argc != 4 || bankml_open(NULL, argv[2], 0, NULL) != NULL || bankml_open(argv[1], NULL, 0, &reason) != NULL) abort();
    printf("%s\n", reason);
    bankml_free(reason);
    bankml_t *model = bankml_open(argv[1], argv[2], 0, NULL);
    if (model == NULL) return 2;
    setenv("BANKML_CACHE_TYPE", "q9", 1); /* Python has started, and has its own idea of the environment */
    if (bankml_open(argv[1], argv[2], 0, &reason) != NULL) abort();
    printf("%s\n", reason);
    bankml_free(reason);
    unsetenv("BANKML_CACHE_TYPE");
    told(NULL, "{}");
    told(model, NULL);
    told(model, "{\"messages\": \"\xff\"}");
    told(model, "");
    told(model, "{\"messages\"");
    told(model, "{\"messages\": []}");
    told(model, "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"top_k\": \"a\"}");
    told(model, "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"json_schema\": {\"type\": \"frob\"}}");
    told(model, "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"max_tokens\": 3, \"seed\": 1,"
                " \"model\": 5, \"stream\": \"yes\"}");
    if (system(argv[3]) != 0) abort();
    told(model, "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}");
    bankml_close(model);
    bankml_close(NULL);
    bankml_free(NULL);
    return 0;
}
