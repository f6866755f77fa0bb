/* The kernel of storage sweeps: write files, and measure one combination of factors on them.
 *
 *   sweep prepare FILES COUNT BYTES IS_DIRECT
 *   sweep measure DIRECTION PATTERN REQUEST_BYTES DEPTH IS_DIRECT TASKS PART_BYTES IS_SHARED FILES SECONDS SEED
 *
 * prepare writes FILES.0, FILES.1 and so on with random data, and flushes them to the device. measure lets TASKS processes read or write
 * (DIRECTION) for SECONDS, each with DEPTH threads that have one request of REQUEST_BYTES in flight. A task uses
 * PART_BYTES: of the file FILES.TASK, or if IS_SHARED those that begin at TASK * PART_BYTES in FILES.0. PATTERN is
 *
 *   sequential   one request after the other, from the start again at the end
 *   random       each request at a random multiple of REQUEST_BYTES
 *   random-seek  SEQUENCE requests after another from a random place
 *
 * Without direct I/O, files are dropped from the page cache before, and the time of writes ends when the data are on
 * the device. Prints "OPERATIONS BYTES SECONDS"; an error ends the program with a message and status 1, and where
 * the file system has no direct I/O (EINVAL) with status 3.
 */
#define _GNU_SOURCE
#include "checked.h"
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { ALIGNMENT = 4096, SEQUENCE = 8, NO_DIRECT_IO = 3, PREPARE_BYTES = 1 << 20, MOST_TASKS = 256, MOST_DEPTH = 1024 };

typedef enum { SEQUENTIAL, RANDOM, RANDOM_SEEK } Pattern;

typedef struct {
    int is_write, is_direct, is_shared;
    Pattern pattern;
    long request_bytes, depth, tasks, part_bytes;
    double seconds;
    uint64_t seed;
    const char *files;
} Job;

/* What a task has done; in memory that processes share. */
typedef struct {
    uint64_t operations;
    double end;
} Done;

typedef struct {
    const Job *job;
    int file;
    const char *path;
    off_t first;
    long requests;   /* of the part */
    uint64_t *next;  /* sequential: the number of the next request, of all threads of the task */
    uint64_t random; /* state */
    double until;
    uint64_t operations;
} Thread;

/* xorshift64*: S. Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled" (2016). */
static uint64_t next_random(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

static uint64_t seeded(uint64_t seed) { return (seed + 1) * UINT64_C(0x9E3779B97F4A7C15) | 1; }

/* Random content: some disks and file systems compress data. */
static unsigned char *random_block(size_t bytes, uint64_t seed) {
    void *block = NULL;
    uint64_t state = seeded(seed);
    if ((errno = posix_memalign(&block, ALIGNMENT, bytes)) != 0)
        die("cannot allocate %zu bytes: %s", bytes, strerror(errno));
    for (size_t at = 0; at + 8 <= bytes; at += 8) {
        uint64_t word = next_random(&state);
        memcpy((unsigned char *)block + at, &word, 8);
    }
    return block;
}

static void fail_on(const char *doing, const char *path, int is_direct) {
    int error = errno;
    fprintf(stderr, "%s: cannot %s %s: %s\n", program, doing, path, strerror(error));
    exit(is_direct && error == EINVAL ? NO_DIRECT_IO : 1);
}

static int open_file(const char *path, int flags, int is_direct) {
    int file = open(path, flags | (is_direct ? O_DIRECT : 0), 0600);
    if (file < 0)
        fail_on("open", path, is_direct);
    return file;
}

static void flush_file(int file, const char *path) {
    if (fsync(file) != 0 && errno != EINVAL) /* EINVAL: a device that cannot be flushed */
        die("cannot write %s: %s", path, strerror(errno));
}

static void write_file(const char *path, long bytes, const unsigned char *block, size_t block_bytes, int is_direct) {
    int file = open_file(path, O_WRONLY | O_CREAT | O_TRUNC, is_direct);
    for (off_t at = 0; at < bytes;) {
        size_t size = (size_t)(bytes - at) < block_bytes ? (size_t)(bytes - at) : block_bytes;
        ssize_t written = pwrite(file, block, size, at);
        if (written == 0)
            errno = ENOSPC;
        if (written <= 0)
            fail_on("write", path, is_direct);
        at += written;
    }
    flush_file(file, path);
    close_or_die(file, path);
}

static int prepare(const char *files, long count, long bytes, int is_direct) {
    size_t block_bytes = bytes < PREPARE_BYTES ? (size_t)bytes : PREPARE_BYTES;
    unsigned char *block = random_block(block_bytes, (uint64_t)getpid());
    for (long number = 0; number < count; number++) {
        char path[4096];
        snprintf(path, sizeof path, "%s.%ld", files, number);
        write_file(path, bytes, block, block_bytes, is_direct);
    }
    free(block);
    return 0;
}

static uint64_t place_of_next(Thread *thread, uint64_t *place) {
    uint64_t requests = (uint64_t)thread->requests;
    switch (thread->job->pattern) {
    case SEQUENTIAL:
        return __atomic_fetch_add(thread->next, 1, __ATOMIC_RELAXED) % requests;
    case RANDOM:
        return next_random(&thread->random) % requests;
    default:
        *place = thread->operations % SEQUENCE ? (*place + 1) % requests : next_random(&thread->random) % requests;
        return *place;
    }
}

static void *use_file(void *argument) {
    Thread *thread = argument;
    const Job *job = thread->job;
    size_t bytes = (size_t)job->request_bytes;
    unsigned char *block = random_block(bytes, thread->random);
    uint64_t place = 0;
    do {
        off_t at = thread->first + (off_t)(place_of_next(thread, &place) * bytes);
        ssize_t done = job->is_write ? pwrite(thread->file, block, bytes, at) : pread(thread->file, block, bytes, at);
        if (done != (ssize_t)bytes) {
            if (done >= 0)
                errno = job->is_write ? ENOSPC : EIO; /* short write: full disk; short read: truncated file */
            fail_on(job->is_write ? "write" : "read", thread->path, job->is_direct);
        }
        thread->operations++;
    } while (now() < thread->until);
    free(block);
    return NULL;
}

static void do_task(const Job *job, long task, double began, Done *done) {
    char path[4096];
    snprintf(path, sizeof path, "%s.%ld", job->files, job->is_shared ? 0 : task);
    int file = open_file(path, job->is_write ? O_WRONLY : O_RDONLY, job->is_direct);
    uint64_t next = 0;
    Thread *threads = allocate((size_t)job->depth, sizeof *threads);
    pthread_t *started = allocate((size_t)job->depth, sizeof *started);
    for (long number = 0; number < job->depth; number++) {
        threads[number] = (Thread){.job = job,
                                   .file = file,
                                   .path = path,
                                   .first = job->is_shared ? (off_t)task * job->part_bytes : 0,
                                   .requests = job->part_bytes / job->request_bytes,
                                   .next = &next,
                                   .random = seeded(job->seed + (uint64_t)(task * MOST_DEPTH + number)),
                                   .until = began + job->seconds};
        if ((errno = pthread_create(&started[number], NULL, use_file, &threads[number])) != 0)
            die("cannot start %ld threads: %s", job->depth, strerror(errno));
    }
    for (long number = 0; number < job->depth; number++) {
        pthread_join(started[number], NULL);
        done->operations += threads[number].operations;
    }
    if (job->is_write)
        flush_file(file, path);
    done->end = now();
    close_or_die(file, path);
}

static void drop_from_cache(const Job *job) {
    for (long task = 0; task < (job->is_shared ? 1 : job->tasks); task++) {
        char path[4096];
        snprintf(path, sizeof path, "%s.%ld", job->files, task);
        int file = open_file(path, O_RDONLY, 0);
        posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED); /* advice, which a file system may ignore */
        close(file);
    }
}

static int measure(const Job *job) {
    Done *done = mmap(NULL, (size_t)job->tasks * sizeof *done, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (done == MAP_FAILED)
        die("cannot share memory: %s", strerror(errno));
    if (!job->is_direct)
        drop_from_cache(job);
    double began = now(), end = began;
    for (long task = 0; task < job->tasks; task++) {
        pid_t process = fork();
        if (process < 0)
            die("cannot start %ld tasks: %s", job->tasks, strerror(errno));
        if (process == 0) {
            do_task(job, task, began, &done[task]);
            exit(0);
        }
    }
    int failed = 0, status;
    while (wait(&status) > 0)
        if (status != 0)
            failed = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    if (failed)
        return failed; /* the task has said why */
    uint64_t operations = 0;
    for (long task = 0; task < job->tasks; task++) {
        operations += done[task].operations;
        end = done[task].end > end ? done[task].end : end;
    }
    printf("%llu %llu %.6f\n", (unsigned long long)operations, (unsigned long long)operations * (unsigned long long)job->request_bytes, end - began);
    finish_output();
    return 0;
}

static int choice(const char *what, const char *text, const char *const *names) {
    for (int number = 0; names[number] != NULL; number++)
        if (strcmp(text, names[number]) == 0)
            return number;
    die("%s: %s is unknown", what, text);
    return -1;
}

int main(int argc, char **argv) {
    static const char *const directions[] = {"read", "write", NULL};
    static const char *const patterns[] = {"sequential", "random", "random-seek", NULL};
    program = "sweep";
    if (argc == 6 && strcmp(argv[1], "prepare") == 0)
        return prepare(argv[2], whole("COUNT", argv[3], 1, MOST_TASKS), whole("BYTES", argv[4], 1, 1e15),
                       (int)whole("IS_DIRECT", argv[5], 0, 1));
    if (argc != 13 || strcmp(argv[1], "measure") != 0)
        die("usage: sweep prepare FILES COUNT BYTES IS_DIRECT | sweep measure DIRECTION PATTERN REQUEST_BYTES DEPTH IS_DIRECT "
            "TASKS PART_BYTES IS_SHARED FILES SECONDS SEED");
    Job job = {.is_write = choice("DIRECTION", argv[2], directions),
               .pattern = (Pattern)choice("PATTERN", argv[3], patterns),
               .request_bytes = whole("REQUEST_BYTES", argv[4], 1, 1 << 30),
               .depth = whole("DEPTH", argv[5], 1, MOST_DEPTH),
               .is_direct = (int)whole("IS_DIRECT", argv[6], 0, 1),
               .tasks = whole("TASKS", argv[7], 1, MOST_TASKS),
               .part_bytes = whole("PART_BYTES", argv[8], 1, 1e15),
               .is_shared = (int)whole("IS_SHARED", argv[9], 0, 1),
               .files = argv[10],
               .seconds = number("SECONDS", argv[11], 0, 1e6),
               .seed = (uint64_t)whole("SEED", argv[12], 0, 1e15)};
    if (job.part_bytes < job.request_bytes)
        die("PART_BYTES must be at least REQUEST_BYTES");
    return measure(&job);
}
