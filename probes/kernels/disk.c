/* The kernel of Disk: performance of a file system without its page cache.
 *
 *   disk OPERATION FILE BLOCK_BYTES FILE_BYTES LIMIT_SECONDS
 *
 * OPERATION is one of
 *   write     write a new file of FILE_BYTES sequentially, then fsync it
 *   read      read that file sequentially
 *   randread  read random blocks of it, as many as it has
 *   randwrite write random blocks of it, as many as it has, then fsync it
 *   metadata  create, stat and unlink FILE_BYTES empty files beside FILE
 *
 * The first four use direct I/O (O_DIRECT). On a file system without direct I/O they use the page cache,
 * after advising the system to drop the file from it. Each operation ends after LIMIT_SECONDS, with the work
 * done so far. Prints "direct IS_DIRECT" (0 or 1) and "OPERATION OPERATIONS BYTES SECONDS"; metadata prints
 * three such lines: create, stat and unlink. An error ends the program with a message and status 1.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ALIGNMENT = 4096, NAME_BYTES = 4096 };

typedef struct {
    const char *operation, *path;
    uint64_t block_bytes, file_bytes;
    double limit_seconds;
} Task;

static _Noreturn void die(const char *doing, const char *path) {
    fprintf(stderr, "disk: cannot %s %s: %s\n", doing, path, strerror(errno));
    exit(1);
}

static uint64_t number(const char *text) {
    char *end = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || *text < '0' || *text > '9' || *end != '\0') {
        fprintf(stderr, "disk: not a number: %s\n", text);
        exit(2);
    }
    return value;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* xorshift64*: S. Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled" (2016). */
static uint64_t next_random(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

static void print(const char *what, uint64_t operations, uint64_t bytes, double seconds) {
    printf("%s %" PRIu64 " %" PRIu64 " %.9f\n", what, operations, bytes, seconds);
}

/* Flush the output and return the exit status. */
static int finish_output(void) {
    if (fflush(stdout) != 0)
        die("write", "the output");
    return 0;
}

static int open_file(const Task *task, int flags) {
    int file = open(task->path, flags | O_DIRECT, 0600);
    int direct = file >= 0;
    if (!direct && errno == EINVAL)
        file = open(task->path, flags, 0600);
    if (file < 0)
        die("open", task->path);
    printf("direct %d\n", direct);
    if (!direct)
        posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    return file;
}

/* Random content: some disks and file systems compress data. */
static unsigned char *block_of(uint64_t size) {
    void *block = NULL;
    uint64_t state = (uint64_t)getpid() * UINT64_C(0x9E3779B97F4A7C15) + 1;
    if ((errno = posix_memalign(&block, ALIGNMENT, size)) != 0)
        die("allocate memory for", "a block");
    for (uint64_t i = 0; i + 8 <= size; i += 8) {
        uint64_t word = next_random(&state);
        memcpy((unsigned char *)block + i, &word, 8);
    }
    return block;
}

static void use_block(const Task *task, int file, int writes, unsigned char *block, uint64_t index) {
    off_t at = (off_t)(index * task->block_bytes);
    ssize_t done = writes ? pwrite(file, block, task->block_bytes, at) : pread(file, block, task->block_bytes, at);
    if (done == (ssize_t)task->block_bytes)
        return;
    if (done >= 0)
        errno = writes ? ENOSPC : EIO; /* short write: full disk; short read: truncated file */
    die(writes ? "write" : "read", task->path);
}

static int blocks(const Task *task, int writes, int is_random) {
    uint64_t count = task->file_bytes / task->block_bytes, done = 0, state = UINT64_C(88172645463325252);
    unsigned char *block = block_of(task->block_bytes);
    int creates = writes && !is_random;
    int file = open_file(task, creates ? O_WRONLY | O_CREAT | O_TRUNC : writes ? O_WRONLY : O_RDONLY);
    double began = now();
    while (done < count && (done == 0 || now() - began < task->limit_seconds)) {
        use_block(task, file, writes, block, is_random ? next_random(&state) % count : done);
        done++;
    }
    if (writes && fsync(file) != 0 && errno != EINVAL) /* EINVAL: a device that cannot be flushed */
        die("flush", task->path);
    double seconds = now() - began;
    if (close(file) != 0)
        die("close", task->path);
    print(task->operation, done, done * task->block_bytes, seconds);
    free(block);
    return finish_output();
}

static void create_file(const char *path) {
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (file < 0 || close(file) != 0)
        die("create", path);
}

static void stat_file(const char *path) {
    struct stat status;
    if (stat(path, &status) != 0)
        die("stat", path);
}

static void unlink_file(const char *path) {
    if (unlink(path) != 0)
        die("remove", path);
}

/* Call `work` for the first `count` files, until the time limit if `may_stop`. Return the number of calls. */
static uint64_t for_each_file(const Task *task, const char *what, void (*work)(const char *), uint64_t count,
                              int may_stop) {
    char path[NAME_BYTES];
    double began = now();
    uint64_t done = 0;
    while (done < count && !(may_stop && done > 0 && now() - began > task->limit_seconds)) {
        snprintf(path, sizeof path, "%s.%" PRIu64, task->path, done++);
        work(path);
    }
    print(what, done, 0, now() - began);
    return done;
}

static int metadata(const Task *task) {
    uint64_t created = for_each_file(task, "create", create_file, task->file_bytes, 1);
    for_each_file(task, "stat", stat_file, created, 1);
    for_each_file(task, "unlink", unlink_file, created, 0);
    return finish_output();
}

int main(int argc, char **argv) {
    if (argc != 6) {
        fprintf(stderr, "usage: disk OPERATION FILE BLOCK_BYTES FILE_BYTES LIMIT_SECONDS\n");
        return 2;
    }
    Task task = {argv[1], argv[2], number(argv[3]), number(argv[4]), (double)number(argv[5])};
    if (strlen(task.path) > NAME_BYTES - 32 || task.block_bytes == 0 || task.file_bytes == 0) {
        fprintf(stderr, "disk: the path is too long, or a size is 0\n");
        return 2;
    }
    if (strcmp(task.operation, "metadata") == 0)
        return metadata(&task);
    if (task.block_bytes % 512 != 0 || task.file_bytes < task.block_bytes) {
        fprintf(stderr, "disk: BLOCK_BYTES must be a multiple of 512, FILE_BYTES at least one block\n");
        return 2;
    }
    int is_random = strncmp(task.operation, "rand", 4) == 0;
    const char *direction = task.operation + (is_random ? 4 : 0);
    if (strcmp(direction, "write") == 0 || strcmp(direction, "read") == 0)
        return blocks(&task, *direction == 'w', is_random);
    fprintf(stderr, "disk: unknown operation: %s\n", task.operation);
    return 2;
}
