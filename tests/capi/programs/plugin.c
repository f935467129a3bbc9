/* plugin LIBBANKML MODEL FORK: a host that loads the library for itself alone, and unloads it. */
#include <bankml.h>
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
    for (int i = 0; i < 2 && argc == 4; ++i) {
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (library == NULL) return 1;
        bankml_t *(*open)(const char *, const char *, uint32_t, char **) = NULL;
        int (*chat)(bankml_t *, const char *, bankml_piece_cb, void *, char **) = NULL;
        void (*close)(bankml_t *) = NULL, (*release)(char *) = NULL;
        *(void **)&open = dlsym(library, "bankml_open");
        *(void **)&chat = dlsym(library, "bankml_chat");
        *(void **)&close = dlsym(library, "bankml_close");
        *(void **)&release = dlsym(library, "bankml_free");
        char *result = NULL;
        bankml_t *model = open(argv[2], argv[3], 512, NULL);
        if (model == NULL) return 2;
        int code = chat(model, "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"max_tokens\": 2}", NULL, NULL, &result);
        printf("%d\n", code);
        release(result);
        close(model);
        dlclose(library);
    }
    return 0;
}
