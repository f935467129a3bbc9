/* Asks a model one question and prints the answer as it comes.
 *
 *   cc chat.c $(bankml capi --cflags --libs) -o chat
 *   ./chat MODEL.gguf MODEL.gguf.FORK.json "Say hello."
 */
#include <bankml.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int print_piece(const char *piece, size_t len, void *user) {
    FILE *out = user;
    return fwrite(piece, 1, len, out) == len && fflush(out) == 0; /* 0 stops the answer */
}

/* The request for one question; the caller frees it. */
static char *request_for(const char *question) {
    const char *head = "{\"max_tokens\": 64, \"messages\": [{\"role\": \"user\", \"content\": \"", *tail = "\"}]}";
    char *request = malloc(strlen(head) + 6 * strlen(question) + strlen(tail) + 1), *to = request;
    if (request == NULL) return NULL;
    to += sprintf(to, "%s", head);
    for (const char *c = question; *c != '\0'; ++c) {
        if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ') to += sprintf(to, "\\u%04x", (unsigned)*c);
        else *to++ = *c;
    }
    sprintf(to, "%s", tail);
    return request;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: %s MODEL.gguf FORK.json QUESTION\n", argv[0]);
        return 1;
    }
    char *reason = NULL;
    bankml_t *model = bankml_open(argv[1], argv[2], 0, &reason);
    if (model == NULL) {
        fprintf(stderr, "%s\n", reason);
        bankml_free(reason);
        return 2;
    }
    char *request = request_for(argv[3]), *result = NULL;
    int code = bankml_chat(model, request, print_piece, stdout, &result);
    printf("\n");
    fprintf(stderr, "%d %s\n", code, result);
    bankml_free(result);
    free(request);
    bankml_close(model);
    return code == BANKML_OK ? 0 : 3;
}
