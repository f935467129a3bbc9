/* Sends a chat request to a verified model: streams the answer to stdout, prints the receipt's hashes to stderr.
 *
 *   cc chat.c $(bankml capi --cflags --libs) -o chat
 *   ./chat MODEL.gguf MODEL.gguf.FORK.json "What is a receipt?"
 */
#include <bankml.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Called for every piece of the answer; returning 0 would stop it. */
static int print_piece(const char *piece, size_t len, void *user) {
    FILE *out = user;
    return fwrite(piece, 1, len, out) == len && fflush(out) == 0;
}

/* The request for one question, which the caller frees; NULL if out of memory. */
static char *request_for(const char *question) {
    static const char head[] = "{\"max_tokens\": 256, \"messages\": [{\"role\": \"user\", \"content\": \"", tail[] = "\"}]}";
    char *request = malloc(sizeof head + 6 * strlen(question) + sizeof tail), *to = request;
    if (request == NULL) return NULL;
    to += sprintf(to, "%s", head);
    for (const char *c = question; *c != '\0'; ++c) {
        if ((unsigned char)*c < 0x20 || *c == '"' || *c == '\\') to += sprintf(to, "\\u%04x", (unsigned)*c);
        else *to++ = *c;
    }
    strcpy(to, tail);
    return request;
}

/* Prints a string of the receipt. A quotation mark inside an answer's text is escaped, so that no answer can forge a key. */
static void print_receipt(const char *result, const char *key) {
    char before[64];
    snprintf(before, sizeof before, "\"%s\": \"", key);
    const char *value = strstr(result, before);
    if (value == NULL) return;
    value += strlen(before);
    fprintf(stderr, "%s %.*s\n", key, (int)strcspn(value, "\""), value);
}

static int ask(bankml_t *model, const char *question) {
    char *request = request_for(question), *result = NULL;
    const int code = bankml_chat(model, request, print_piece, stdout, &result);
    free(request);
    if (code == BANKML_OK) {
        printf("\n");
        print_receipt(result, "model_sha256");
        print_receipt(result, "request_sha256");
        print_receipt(result, "response_sha256");
    } else {
        fprintf(stderr, "bankml_chat returned %d: %s\n", code, result != NULL ? result : "out of memory");
    }
    bankml_free(result);
    return code == BANKML_OK ? 0 : 1;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: %s MODEL.gguf FORK.json QUESTION\n", argv[0]);
        return 2;
    }
    char *reason = NULL;
    bankml_t *model = bankml_open(argv[1], argv[2], 0, &reason);
    if (model == NULL) {
        fprintf(stderr, "%s\n", reason != NULL ? reason : "out of memory");
        bankml_free(reason);
        return 1;
    }
    const int failed = ask(model, argv[3]);
    bankml_close(model);
    return failed;
}
