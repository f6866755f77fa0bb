/* The aggregation kernel of Gather: read every input completely and write one result of a given size.
 *
 *   aggregate RESULT RESULT_BYTES INPUT...
 *
 * Byte i of the result is the sum, modulo 256, of byte (i mod size) of every input. The result thus depends
 * on every byte of every input that is not longer than the result. Prints the number of bytes read and their
 * FNV-1a checksum: "read BYTES bytes, fnv1a64 HEX". An error ends the program with a message and status 1.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1 << 16 };

static _Noreturn void die(const char *doing, const char *path) {
    fprintf(stderr, "aggregate: cannot %s %s: %s\n", doing, path, strerror(errno));
    exit(1);
}

static FILE *open_or_die(const char *path, const char *mode) {
    FILE *file = fopen(path, mode);
    if (file == NULL)
        die("open", path);
    return file;
}

/* Read the whole input and continue the checksum `hash`. */
static uint64_t checksum(const char *path, uint64_t hash, uint64_t *total) {
    static unsigned char block[BLOCK];
    FILE *file = open_or_die(path, "rb");
    size_t got;
    while ((got = fread(block, 1, sizeof block, file)) > 0) {
        for (size_t i = 0; i < got; i++)
            hash = (hash ^ block[i]) * UINT64_C(1099511628211);
        *total += got;
    }
    if (ferror(file))
        die("read", path);
    fclose(file);
    return hash;
}

/* Add the next `wanted` bytes of the input to `sum`, rewinding at its end. */
static void add_cyclic(FILE *file, const char *path, unsigned char *sum, size_t wanted) {
    static unsigned char block[BLOCK];
    size_t done = 0;
    while (done < wanted) {
        size_t got = fread(block, 1, wanted - done, file);
        if (got == 0) {
            if (ferror(file))
                die("read", path);
            if (ftell(file) == 0) {
                fprintf(stderr, "aggregate: %s is empty\n", path);
                exit(1);
            }
            rewind(file);
        }
        for (size_t i = 0; i < got; i++)
            sum[done + i] = (unsigned char)(sum[done + i] + block[i]);
        done += got;
    }
}

static void write_result(const char *path, uint64_t bytes, char **inputs, int count) {
    static unsigned char sum[BLOCK];
    FILE *result = open_or_die(path, "wb");
    FILE **files = calloc((size_t)count, sizeof *files);
    if (files == NULL)
        die("allocate memory for", path);
    for (int i = 0; i < count; i++)
        files[i] = open_or_die(inputs[i], "rb");
    while (bytes > 0) {
        size_t size = bytes < BLOCK ? (size_t)bytes : BLOCK;
        memset(sum, 0, size);
        for (int i = 0; i < count; i++)
            add_cyclic(files[i], inputs[i], sum, size);
        if (fwrite(sum, 1, size, result) != size)
            die("write", path);
        bytes -= size;
    }
    for (int i = 0; i < count; i++)
        fclose(files[i]);
    free(files);
    if (fclose(result) != 0)
        die("write", path);
}

int main(int argc, char **argv) {
    char *end = NULL;
    if (argc < 4) {
        fprintf(stderr, "usage: aggregate RESULT RESULT_BYTES INPUT...\n");
        return 2;
    }
    errno = 0;
    unsigned long long bytes = strtoull(argv[2], &end, 10);
    if (errno != 0 || argv[2][0] < '0' || argv[2][0] > '9' || *end != '\0') {
        fprintf(stderr, "aggregate: not a number of bytes: %s\n", argv[2]);
        return 2;
    }
    uint64_t hash = UINT64_C(14695981039346656037), total = 0;
    for (int i = 3; i < argc; i++)
        hash = checksum(argv[i], hash, &total);
    write_result(argv[1], bytes, argv + 3, argc - 3);
    printf("read %" PRIu64 " bytes, fnv1a64 %016" PRIx64 "\n", total, hash);
    if (fflush(stdout) != 0)
        die("write", "the output");
    return 0;
}
