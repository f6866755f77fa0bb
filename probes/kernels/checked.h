/* Checked operations for kernels: every error ends the program with a message and status 1. */
#ifndef CHECKED_H
#define CHECKED_H

#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static const char *program; /* name of the program, for messages */

/* The message is one write: those of tasks that fail at once do not mix. */
static void die(const char *format, ...) {
    char message[1000];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    dprintf(STDERR_FILENO, "%s: %s\n", program, message);
    exit(1);
}

static inline double number(const char *what, const char *text, double least, double most) {
    char *end = NULL;
    double value = strtod(text, &end);
    if (*text == '\0' || *end != '\0' || !(value >= least && value <= most))
        die("%s: %s is not a number from %g to %g", what, text, least, most);
    return value;
}

static inline long whole(const char *what, const char *text, long least, long most) {
    double value = number(what, text, (double)least, (double)most);
    if (value != floor(value))
        die("%s: %s is not a whole number", what, text);
    return (long)value;
}

static inline void *allocate(size_t count, size_t size) {
    void *memory = calloc(count, size);
    if (memory == NULL)
        die("cannot allocate %zu times %zu bytes: %s", count, size, strerror(errno));
    return memory;
}

static inline int open_or_die(const char *path, int flags) {
    int file = open(path, flags, 0666);
    if (file < 0)
        die("cannot open %s: %s", path, strerror(errno));
    return file;
}

static inline void read_at(int file, const char *path, void *to, size_t bytes, off_t offset) {
    for (char *next = to; bytes > 0;) {
        ssize_t got = pread(file, next, bytes, offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            die("cannot read %s: %s", path, got == 0 ? "it ends too early" : strerror(errno));
        next += got, offset += got, bytes -= (size_t)got;
    }
}

static inline void write_at(int file, const char *path, const void *from, size_t bytes, off_t offset) {
    for (const char *next = from; bytes > 0;) {
        ssize_t put = pwrite(file, next, bytes, offset);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            die("cannot write %s: %s", path, strerror(errno));
        next += put, offset += put, bytes -= (size_t)put;
    }
}

static inline void close_or_die(int file, const char *path) {
    if (close(file) != 0) /* some file systems report a full disk only here */
        die("cannot write %s: %s", path, strerror(errno));
}

static void finish_output(void) {
    if (fflush(stdout) != 0 || ferror(stdout))
        die("cannot write the output: %s", strerror(errno));
}

static inline double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

#endif
