/* Records each I/O call on files that a program makes (LD_PRELOAD; docs/storage.md). No contents are recorded;
 * a file is named by a salted hash of its path.
 *
 * Environment: GRIDCAST_IOTRACE (a directory that exists: each process writes a file there), GRIDCAST_IOTRACE_SALT
 * (a number), GRIDCAST_IOTRACE_AREAS (directories, separated by colons: only files below them; otherwise all but
 * those of the system), GRIDCAST_IOTRACE_ONLY (names of programs, separated by colons), GRIDCAST_IOTRACE_BYTES (limit for the file of a process), GRIDCAST_IOTRACE_TASK (a number
 * for the process; of MPI programs it is the rank).
 *
 * A process's file is a header and chunks of records, each of them of one thread. It is mapped into memory, so that
 * it is complete also if the process is killed. Counters in the header count each call, also those that have no
 * record because the limit is reached or the disk is full.
 *
 * Symbols are resolved at their first use: libraries do I/O before the constructor of this one runs.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* The order is that of reporters/iotrace/records.py. */
enum {
    NOTHING, OPEN, CLOSE, READ, WRITE, FREAD, FWRITE, FLUSH, FSYNC, FDATASYNC, ADVISE, TRUNCATE, ALLOCATE, STAT,
    UNLINK, RENAME, MKDIR, RMDIR, LOCK, UNLOCK, BARRIER, OPERATIONS
};

enum { CREATED = 1, TRUNCATED = 2, DIRECT = 4, APPENDING = 8, FOR_READING = 16, FOR_WRITING = 32 }; /* of OPEN */

enum {
    DESCRIPTORS = 1 << 16, HEADER_BYTES = 4096, FIRST_CHUNK = 1 << 16, LARGEST_CHUNK = 1 << 20, BUFFER_BYTES = 4096
};

typedef struct {
    uint64_t calls, bytes, nanoseconds;
} Counter;

typedef struct {
    char magic[8];
    uint32_t version, header_bytes, record_bytes, operations;
    int64_t process, parent, task, tasks;
    int64_t began, ended; /* by the monotonic clock */
    int64_t real_time_offset;
    uint64_t lost; /* calls without a record */
    Counter counters[OPERATIONS];
} Header;

typedef struct {
    int64_t began, duration;
    uint64_t file;
    int64_t offset, size, result;
    int64_t more; /* of OPEN: the bytes in the page cache; of RENAME: the other file; otherwise: calls */
    uint32_t flags;
    uint32_t operation; /* 0 until the record is complete */
} Record;

typedef struct {
    uint64_t bytes; /* of the chunk, with this header */
    int64_t thread;
    uint64_t unused[6];
} Chunk;

typedef struct {
    uint64_t file;
    int64_t position;
    uint8_t state, is_shared; /* is_shared: another process or descriptor may move its position */
} Descriptor;

enum { UNKNOWN, IGNORED, TRACED };
enum { NOT_READY, READY, OFF };

static Descriptor descriptors[DESCRIPTORS];
static Header *header;
static int state = NOT_READY;
static pid_t own_process;
static int64_t born;
static uint64_t file_end = HEADER_BYTES, limit_bytes = 64 << 20, salt;
static char trace_directory[PATH_MAX], areas[PATH_MAX], trace_file[PATH_MAX + 64];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define THREAD_LOCAL static __thread __attribute__((tls_model("initial-exec")))
THREAD_LOCAL int is_inside; /* a call of ours: not recorded */
THREAD_LOCAL Record *next_record, *end_of_records, *last_record;
THREAD_LOCAL Chunk *chunk;
THREAD_LOCAL uint64_t next_chunk_bytes;

#define REAL(name) ((__typeof__(&name))real(#name, &real_##name))
static void *real(const char *name, void **resolved) {
    if (__builtin_expect(*resolved == NULL, 0))
        *resolved = dlsym(RTLD_NEXT, name);
    return *resolved;
}
#define KNOWN(name) static void *real_##name

static inline int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* ---- the file of the process ---- */

static int64_t number_of(const char *const *names) {
    for (; *names; names++) {
        const char *value = getenv(*names);
        if (value && *value)
            return strtoll(value, NULL, 10);
    }
    return -1;
}

/* Return whether *programs*, names separated by colons, has this one; without any, all are wanted. */
static int is_wanted(const char *programs) {
    size_t length = strlen(program_invocation_short_name);
    for (const char *name = programs; name && *name; name += strcspn(name, ":") + (name[strcspn(name, ":")] == ':'))
        if (strcspn(name, ":") == length && strncmp(name, program_invocation_short_name, length) == 0)
            return 1;
    return programs == NULL || !*programs;
}

static void set_up(void) { /* the lock is held */
    const char *directory = getenv("GRIDCAST_IOTRACE"), *limited = getenv("GRIDCAST_IOTRACE_BYTES");
    const char *salted = getenv("GRIDCAST_IOTRACE_SALT"), *below = getenv("GRIDCAST_IOTRACE_AREAS");
    if (directory == NULL || !is_wanted(getenv("GRIDCAST_IOTRACE_ONLY"))) {
        __atomic_store_n(&state, OFF, __ATOMIC_RELEASE);
        return;
    }
    own_process = getpid();
    born = born ? born : now();
    limit_bytes = limited ? strtoull(limited, NULL, 10) : limit_bytes;
    salt = salted ? strtoull(salted, NULL, 10) : 0;
    snprintf(trace_directory, sizeof trace_directory, "%s", directory);
    snprintf(areas, sizeof areas, "%s", below ? below : "");
    __atomic_store_n(&state, READY, __ATOMIC_RELEASE);
}

static void make_ready(void) {
    pthread_mutex_lock(&lock);
    if (state == NOT_READY)
        set_up();
    pthread_mutex_unlock(&lock);
}

static int is_ready(void) {
    if (__builtin_expect(__atomic_load_n(&state, __ATOMIC_ACQUIRE) == NOT_READY, 0))
        make_ready();
    return state == READY;
}

static void fill(Header *into) {
    static const char *const RANKS[] = {"GRIDCAST_IOTRACE_TASK", "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK",
                                        "SLURM_PROCID", NULL};
    static const char *const SIZES[] = {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS", NULL};
    struct timespec real_time;
    clock_gettime(CLOCK_REALTIME, &real_time);
    *into = (Header){.magic = "GRIDIOT", .version = 1, .header_bytes = HEADER_BYTES, .record_bytes = sizeof(Record),
                     .operations = OPERATIONS, .process = getpid(), .parent = getppid(), .task = number_of(RANKS),
                     .tasks = number_of(SIZES), .began = born};
    into->real_time_offset = (int64_t)real_time.tv_sec * 1000000000 + real_time.tv_nsec - now();
}

/* Open the file of this process. No descriptor is kept: programs close those that are not theirs. */
static int open_trace(int flags) {
    return (int)syscall(SYS_openat, AT_FDCWD, trace_file, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
}

/* Make the file of this process. Without one, calls are only counted, and lost. */
static void start_process(void) {
    static Header nowhere;
    pthread_mutex_lock(&lock);
    if (header == NULL) {
        snprintf(trace_file, sizeof trace_file, "%s/%ld-%lld.part", trace_directory, (long)getpid(), (long long)now());
        Header *mapped = MAP_FAILED;
        int file = open_trace(O_CREAT | O_EXCL);
        if (file >= 0 && syscall(SYS_ftruncate, file, (off_t)HEADER_BYTES) == 0)
            mapped = mmap(NULL, HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (file >= 0)
            syscall(SYS_close, file);
        if (mapped == MAP_FAILED) {
            mapped = &nowhere;
            limit_bytes = 0;
        }
        fill(mapped);
        file_end = HEADER_BYTES;
        __atomic_store_n(&header, mapped, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
}

/* Return room of the file in memory. It is reserved on the disk, so that no later write to its pages can fail. */
static void *grow(uint64_t bytes) { /* the lock is held */
    void *mapped = MAP_FAILED;
    off_t offset = (off_t)file_end;
    int file = file_end + bytes <= limit_bytes ? open_trace(0) : -1;
    if (file < 0)
        return NULL;
    int is_reserved = syscall(SYS_fallocate, file, 0, offset, (off_t)bytes) == 0;
    if (is_reserved || (errno == EOPNOTSUPP && syscall(SYS_ftruncate, file, offset + (off_t)bytes) == 0))
        mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, offset);
    syscall(SYS_close, file);
    if (mapped == MAP_FAILED)
        return NULL;
    file_end += bytes;
#ifdef MADV_POPULATE_WRITE
    madvise(mapped, bytes, MADV_POPULATE_WRITE);
#endif
    return mapped;
}

static Record *new_chunk(void) {
    int kept = errno;
    if (chunk != NULL)
        munmap(chunk, chunk->bytes); /* its pages stay in the file */
    if (next_chunk_bytes < LARGEST_CHUNK)
        next_chunk_bytes = next_chunk_bytes == 0 ? FIRST_CHUNK : 4 * next_chunk_bytes;
    pthread_mutex_lock(&lock);
    chunk = grow(next_chunk_bytes);
    pthread_mutex_unlock(&lock);
    next_record = end_of_records = last_record = NULL;
    if (chunk != NULL) {
        *chunk = (Chunk){.bytes = next_chunk_bytes, .thread = syscall(SYS_gettid)};
        next_record = (Record *)(chunk + 1);
        end_of_records = (Record *)((char *)chunk + next_chunk_bytes);
    }
    errno = kept;
    return next_record;
}

static inline void count(unsigned operation, int64_t bytes, int64_t duration) {
    Counter *counter = &header->counters[operation];
    __atomic_fetch_add(&counter->calls, 1, __ATOMIC_RELAXED);
    if (bytes > 0)
        __atomic_fetch_add(&counter->bytes, (uint64_t)bytes, __ATOMIC_RELAXED);
    __atomic_fetch_add(&counter->nanoseconds, (uint64_t)duration, __ATOMIC_RELAXED);
}

static Record *add(const Record *values, unsigned operation) {
    if (__builtin_expect(__atomic_load_n(&header, __ATOMIC_ACQUIRE) == NULL, 0))
        start_process();
    count(operation, operation >= READ && operation <= FWRITE ? values->result : 0, values->duration);
    if (__builtin_expect(next_record == end_of_records, 0) && new_chunk() == NULL) {
        __atomic_fetch_add(&header->lost, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    Record *record = next_record++;
    *record = *values;
    __atomic_store_n(&record->operation, operation, __ATOMIC_RELEASE);
    return last_record = record;
}

static inline void record(unsigned operation, uint64_t file, int64_t began, int64_t offset, int64_t size, int64_t result) {
    Record values = {.began = began, .duration = now() - began, .file = file, .offset = offset, .size = size,
                     .result = result, .more = 1};
    add(&values, operation);
}

/* Record a call on a stream. Streams have a buffer, so calls of fewer bytes than it has are one record. */
static void record_stream(unsigned operation, uint64_t file, int64_t began, int64_t offset, int64_t bytes) {
    int64_t duration = now() - began;
    Record *last = last_record;
    if (last != NULL && last->operation == operation && last->file == file && last->size + bytes <= BUFFER_BYTES &&
        last->offset + last->size == offset) {
        count(operation, bytes, duration);
        last->duration += duration, last->size += bytes, last->result += bytes, last->more++;
        return;
    }
    Record values = {.began = began, .duration = duration, .file = file, .offset = offset, .size = bytes,
                     .result = bytes, .more = 1};
    add(&values, operation);
}

/* ---- forks and ends ---- */

static void share_positions(void) {
    for (int file = 0; file < DESCRIPTORS; file++)
        if (descriptors[file].state != UNKNOWN)
            descriptors[file].is_shared = 1;
}

static void begin_child(void) {
    pthread_mutex_init(&lock, NULL);
    share_positions();
    header = NULL, chunk = NULL, next_record = end_of_records = last_record = NULL, next_chunk_bytes = 0;
    own_process = getpid(), born = now();
}

static void end_process(void) {
    if (header != NULL && own_process == getpid())
        header->ended = now();
}

__attribute__((constructor)) static void start(void) {
    born = born ? born : now();
    if (is_ready())
        pthread_atfork(NULL, share_positions, begin_child);
}

__attribute__((destructor)) static void finish(void) { end_process(); }

/* ---- names ---- */

static int is_below(const char *path, const char *directory, size_t length) {
    return strncmp(path, directory, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

static int is_in_area(const char *path) {
    static const char *const SYSTEM[] = {"/proc", "/sys", "/dev", "/usr", "/lib", "/lib64", "/lib32", "/bin", "/sbin",
                                         "/etc", "/run", NULL};
    if (*path != '/' || is_below(path, trace_directory, strlen(trace_directory)))
        return 0;
    for (const char *area = areas; *area;) {
        size_t length = strcspn(area, ":");
        if (is_below(path, area, length))
            return 1;
        area += length + (area[length] == ':');
    }
    for (const char *const *directory = SYSTEM; *directory && !*areas; directory++)
        if (is_below(path, *directory, strlen(*directory)))
            return 0;
    return !*areas;
}

static uint64_t hashed(const char *path) { /* FNV-1a, and the end of splitmix64 */
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ salt;
    for (; *path; path++)
        hash = (hash ^ (unsigned char)*path) * UINT64_C(0x100000001b3);
    hash = (hash ^ (hash >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ (hash >> 27)) * UINT64_C(0x94d049bb133111eb);
    return hash ^ (hash >> 31);
}

static int path_of(int file, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
    path[length > 0 ? length : 0] = '\0';
    return length > 0;
}

/* Return the hash of a path that need not exist, or 0 if its files are not recorded. */
static uint64_t named(int directory, const char *path) {
    char whole[2 * PATH_MAX], base[PATH_MAX];
    if (is_inside || path == NULL || !is_ready())
        return 0;
    if (*path == '/')
        return is_in_area(path) ? hashed(path) : 0;
    if (directory == AT_FDCWD ? syscall(SYS_getcwd, base, sizeof base) <= 0 : !path_of(directory, base))
        return 0;
    while (path[0] == '.' && path[1] == '/')
        path += 2;
    snprintf(whole, sizeof whole, "%s/%s", base, path);
    return is_in_area(whole) ? hashed(whole) : 0;
}

static void classify(int file, Descriptor *descriptor) {
    char path[PATH_MAX];
    struct stat status;
    int kept = errno;
    Descriptor found = {.state = IGNORED};
    if (is_ready() && syscall(SYS_fstat, file, &status) == 0 && S_ISREG(status.st_mode) && path_of(file, path) &&
        is_in_area(path))
        found = (Descriptor){.file = hashed(path), .state = TRACED, .is_shared = 1};
    *descriptor = found;
    errno = kept;
}

static inline Descriptor *traced(int file) {
    if (is_inside || (unsigned)file >= DESCRIPTORS)
        return NULL;
    Descriptor *descriptor = &descriptors[file];
    if (__builtin_expect(descriptor->state == UNKNOWN, 0))
        classify(file, descriptor);
    return descriptor->state == TRACED ? descriptor : NULL;
}

/* Return whether this process is the one that the table of descriptors describes: a child of vfork shares it. */
static int is_own(void) { return state == READY && getpid() == own_process; }

static void forget(int file) {
    if ((unsigned)file < DESCRIPTORS && !is_inside)
        descriptors[file] = (Descriptor){.state = UNKNOWN};
}

/* ---- open and close ---- */

/* Return how many bytes of the file are in the page cache, or -1. */
static int64_t cached_bytes(int file, int64_t size) {
    struct { uint64_t offset, length; } range = {0, (uint64_t)size};
    struct { uint64_t cached, dirty, writeback, evicted, recently; } found;
    enum { CACHESTAT = 451 };
    if (size == 0 || syscall(CACHESTAT, file, &range, &found, 0) != 0)
        return size == 0 ? 0 : -1;
    int64_t bytes = (int64_t)found.cached * sysconf(_SC_PAGESIZE);
    return bytes < size ? bytes : size;
}

static void opened(int file, int flags, int64_t began) {
    struct stat status;
    if (file < 0 || is_inside || !is_ready() || !is_own())
        return;
    int64_t duration = now() - began;
    int kept = errno;
    forget(file);
    Descriptor *descriptor = traced(file);
    if (descriptor != NULL && syscall(SYS_fstat, file, &status) == 0) {
        descriptor->position = 0;
        descriptor->is_shared = (flags & O_APPEND) != 0;
        int access = flags & O_ACCMODE;
        Record values = {.began = began, .duration = duration, .file = descriptor->file, .size = status.st_size,
                         .result = file, .more = cached_bytes(file, status.st_size)};
        values.flags = (flags & O_CREAT ? CREATED : 0) | (flags & O_TRUNC ? TRUNCATED : 0) |
                       (flags & O_DIRECT ? DIRECT : 0) | (flags & O_APPEND ? APPENDING : 0) |
                       (access != O_WRONLY ? FOR_READING : 0) | (access != O_RDONLY ? FOR_WRITING : 0);
        add(&values, OPEN);
    }
    errno = kept;
}

static int needs_mode(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

#define MODE_OF(flags)                                                                                                 \
    mode_t mode = 0;                                                                                                   \
    if (needs_mode(flags)) {                                                                                           \
        va_list arguments;                                                                                             \
        va_start(arguments, flags);                                                                                    \
        mode = va_arg(arguments, mode_t);                                                                              \
        va_end(arguments);                                                                                             \
    }

#define OPENING(flags, name, ...)                                                                                      \
    int64_t began = now();                                                                                             \
    int file = REAL(name)(__VA_ARGS__);                                                                                \
    opened(file, flags, began);                                                                                        \
    return file

KNOWN(open); KNOWN(open64); KNOWN(openat); KNOWN(openat64); KNOWN(creat); KNOWN(creat64);
int open(const char *path, int flags, ...) { MODE_OF(flags); OPENING(flags, open, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE_OF(flags); OPENING(flags, open64, path, flags, mode); }
int openat(int directory, const char *path, int flags, ...) {
    MODE_OF(flags);
    OPENING(flags, openat, directory, path, flags, mode);
}
int openat64(int directory, const char *path, int flags, ...) {
    MODE_OF(flags);
    OPENING(flags, openat64, directory, path, flags, mode);
}
int creat(const char *path, mode_t mode) { OPENING(O_WRONLY | O_CREAT | O_TRUNC, creat, path, mode); }
int creat64(const char *path, mode_t mode) { OPENING(O_WRONLY | O_CREAT | O_TRUNC, creat64, path, mode); }
/* Programs compiled with _FORTIFY_SOURCE call these. */
int __open_2(const char *path, int flags) { return open(path, flags); }
int __open64_2(const char *path, int flags) { return open64(path, flags); }
int __openat_2(int directory, const char *path, int flags) { return openat(directory, path, flags); }
int __openat64_2(int directory, const char *path, int flags) { return openat64(directory, path, flags); }

static int flags_of(const char *mode) {
    int is_updating = strchr(mode, '+') != NULL;
    return *mode == 'r'   ? is_updating ? O_RDWR : O_RDONLY
           : *mode == 'w' ? (is_updating ? O_RDWR : O_WRONLY) | O_CREAT | O_TRUNC
                          : (is_updating ? O_RDWR : O_WRONLY) | O_CREAT | O_APPEND;
}

#define OPENING_STREAM(mode, name, ...)                                                                                \
    int64_t began = now();                                                                                             \
    is_inside++;                                                                                                       \
    FILE *stream = REAL(name)(__VA_ARGS__);                                                                            \
    is_inside--;                                                                                                       \
    if (stream != NULL)                                                                                                \
        opened(fileno(stream), flags_of(mode), began);                                                                 \
    return stream

KNOWN(fopen); KNOWN(fopen64); KNOWN(freopen); KNOWN(freopen64);
FILE *fopen(const char *path, const char *mode) { OPENING_STREAM(mode, fopen, path, mode); }
FILE *fopen64(const char *path, const char *mode) { OPENING_STREAM(mode, fopen64, path, mode); }
FILE *freopen(const char *path, const char *mode, FILE *old) { OPENING_STREAM(mode, freopen, path, mode, old); }
FILE *freopen64(const char *path, const char *mode, FILE *old) { OPENING_STREAM(mode, freopen64, path, mode, old); }

KNOWN(close); KNOWN(fclose);
int close(int file) {
    Descriptor *descriptor = state == READY && !is_inside && is_own() ? traced(file) : NULL;
    if (descriptor == NULL) {
        if (is_own())
            forget(file);
        return REAL(close)(file);
    }
    uint64_t name = descriptor->file;
    forget(file);
    int64_t began = now();
    int result = REAL(close)(file);
    record(CLOSE, name, began, 0, 0, result);
    return result;
}
int fclose(FILE *stream) {
    int file = fileno(stream);
    Descriptor *descriptor = traced(file);
    uint64_t name = descriptor ? descriptor->file : 0;
    forget(file);
    int64_t began = now();
    is_inside++;
    int result = REAL(fclose)(stream);
    is_inside--;
    if (descriptor)
        record(CLOSE, name, began, 0, 0, result);
    return result;
}

static void duplicated(int old, int copy) {
    if (copy < 0 || is_inside || !is_own())
        return;
    Descriptor *descriptor = traced(old);
    forget(copy);
    if (descriptor)
        descriptor->is_shared = 1; /* the copy is classified as shared at its first use */
}
KNOWN(dup); KNOWN(dup2); KNOWN(dup3);
int dup(int old) {
    int copy = REAL(dup)(old);
    duplicated(old, copy);
    return copy;
}
int dup2(int old, int wanted) {
    int copy = REAL(dup2)(old, wanted);
    duplicated(old, copy);
    return copy;
}
int dup3(int old, int wanted, int flags) {
    int copy = REAL(dup3)(old, wanted, flags);
    duplicated(old, copy);
    return copy;
}
KNOWN(close_range); KNOWN(closefrom);
static void forget_from(unsigned first, unsigned last) {
    for (unsigned file = first; is_own() && file <= last && file < DESCRIPTORS; file++)
        forget((int)file);
}
int close_range(unsigned first, unsigned last, int flags) {
    forget_from(first, last);
    return REAL(close_range)(first, last, flags);
}
void closefrom(int first) {
    forget_from((unsigned)first, DESCRIPTORS);
    REAL(closefrom)(first);
}

/* ---- reads and writes ---- */

/* Return the offset of a call that moved *bytes* from the position of the file. */
static inline int64_t advance(Descriptor *descriptor, int file, int64_t bytes) {
    int64_t moved = bytes > 0 ? bytes : 0;
    if (descriptor->is_shared) {
        int kept = errno;
        int64_t end = syscall(SYS_lseek, file, (off_t)0, SEEK_CUR);
        errno = kept;
        return end - moved;
    }
    descriptor->position += moved;
    return descriptor->position - moved;
}

static int64_t total(const struct iovec *parts, int count) {
    int64_t bytes = 0;
    for (int part = 0; part < count; part++)
        bytes += (int64_t)parts[part].iov_len;
    return bytes;
}

#define MOVING(operation, file, wanted, at, name, ...)                                                                 \
    Descriptor *descriptor = traced(file);                                                                             \
    if (descriptor == NULL)                                                                                            \
        return REAL(name)(__VA_ARGS__);                                                                                \
    uint64_t named = descriptor->file;                                                                                 \
    int64_t began = now();                                                                                             \
    ssize_t moved = REAL(name)(__VA_ARGS__);                                                                           \
    record(operation, named, began, at, (int64_t)(wanted), moved);                                                     \
    return moved
#define NEXT advance(descriptor, file, moved)

KNOWN(read); KNOWN(write); KNOWN(readv); KNOWN(writev); KNOWN(pread); KNOWN(pread64); KNOWN(pwrite); KNOWN(pwrite64);
KNOWN(preadv); KNOWN(preadv64); KNOWN(pwritev); KNOWN(pwritev64); KNOWN(preadv2); KNOWN(pwritev2); KNOWN(preadv64v2);
KNOWN(pwritev64v2);
ssize_t read(int file, void *to, size_t size) { MOVING(READ, file, size, NEXT, read, file, to, size); }
ssize_t write(int file, const void *from, size_t size) { MOVING(WRITE, file, size, NEXT, write, file, from, size); }
ssize_t readv(int file, const struct iovec *to, int count) {
    MOVING(READ, file, total(to, count), NEXT, readv, file, to, count);
}
ssize_t writev(int file, const struct iovec *from, int count) {
    MOVING(WRITE, file, total(from, count), NEXT, writev, file, from, count);
}
ssize_t pread(int file, void *to, size_t size, off_t offset) {
    MOVING(READ, file, size, offset, pread, file, to, size, offset);
}
ssize_t pread64(int file, void *to, size_t size, off64_t offset) {
    MOVING(READ, file, size, offset, pread64, file, to, size, offset);
}
ssize_t pwrite(int file, const void *from, size_t size, off_t offset) {
    MOVING(WRITE, file, size, offset, pwrite, file, from, size, offset);
}
ssize_t pwrite64(int file, const void *from, size_t size, off64_t offset) {
    MOVING(WRITE, file, size, offset, pwrite64, file, from, size, offset);
}
ssize_t preadv(int file, const struct iovec *to, int count, off_t offset) {
    MOVING(READ, file, total(to, count), offset, preadv, file, to, count, offset);
}
ssize_t preadv64(int file, const struct iovec *to, int count, off64_t offset) {
    MOVING(READ, file, total(to, count), offset, preadv64, file, to, count, offset);
}
ssize_t pwritev(int file, const struct iovec *from, int count, off_t offset) {
    MOVING(WRITE, file, total(from, count), offset, pwritev, file, from, count, offset);
}
ssize_t pwritev64(int file, const struct iovec *from, int count, off64_t offset) {
    MOVING(WRITE, file, total(from, count), offset, pwritev64, file, from, count, offset);
}
#define AT(offset) (offset) < 0 ? NEXT : (offset) /* -1 stands for the position of the file */
ssize_t preadv2(int file, const struct iovec *to, int count, off_t offset, int flags) {
    MOVING(READ, file, total(to, count), AT(offset), preadv2, file, to, count, offset, flags);
}
ssize_t preadv64v2(int file, const struct iovec *to, int count, off64_t offset, int flags) {
    MOVING(READ, file, total(to, count), AT(offset), preadv64v2, file, to, count, offset, flags);
}
ssize_t pwritev2(int file, const struct iovec *from, int count, off_t offset, int flags) {
    MOVING(WRITE, file, total(from, count), AT(offset), pwritev2, file, from, count, offset, flags);
}
ssize_t pwritev64v2(int file, const struct iovec *from, int count, off64_t offset, int flags) {
    MOVING(WRITE, file, total(from, count), AT(offset), pwritev64v2, file, from, count, offset, flags);
}
ssize_t __read_chk(int file, void *to, size_t size, size_t room) {
    return size <= room ? read(file, to, size) : (abort(), -1);
}
ssize_t __pread_chk(int file, void *to, size_t size, off_t offset, size_t room) {
    return size <= room ? pread(file, to, size, offset) : (abort(), -1);
}
ssize_t __pread64_chk(int file, void *to, size_t size, off64_t offset, size_t room) {
    return size <= room ? pread64(file, to, size, offset) : (abort(), -1);
}

KNOWN(lseek); KNOWN(lseek64);
#define SEEKING(name)                                                                                                  \
    off_t result = REAL(name)(file, offset, whence);                                                                   \
    if (result >= 0 && (unsigned)file < DESCRIPTORS)                                                                   \
        descriptors[file].position = result;                                                                           \
    return result
off_t lseek(int file, off_t offset, int whence) { SEEKING(lseek); }
off64_t lseek64(int file, off64_t offset, int whence) { SEEKING(lseek64); }

/* A call that moves data between two files is a read of one and a write of the other, which has its time. */
static void record_copy(int from, int to, int64_t began, int64_t from_offset, int64_t to_offset, ssize_t bytes) {
    Descriptor *source = traced(from), *target = traced(to);
    int kept = errno;
    if (target)
        record(WRITE, target->file, began, to_offset >= 0 ? to_offset : advance(target, to, bytes), bytes, bytes);
    if (source)
        record(READ, source->file, target ? now() : began,
               from_offset >= 0 ? from_offset : advance(source, from, bytes), bytes, bytes);
    errno = kept;
}
KNOWN(sendfile); KNOWN(sendfile64); KNOWN(copy_file_range);
#define SENDING(name)                                                                                                  \
    int64_t began = now(), at = offset ? *offset : -1;                                                                 \
    ssize_t bytes = REAL(name)(to, from, offset, size);                                                                \
    record_copy(from, to, began, at, -1, bytes);                                                                       \
    return bytes
ssize_t sendfile(int to, int from, off_t *offset, size_t size) { SENDING(sendfile); }
ssize_t sendfile64(int to, int from, off64_t *offset, size_t size) { SENDING(sendfile64); }
ssize_t copy_file_range(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t size, unsigned flags) {
    int64_t began = now(), from_at = from_offset ? *from_offset : -1, to_at = to_offset ? *to_offset : -1;
    ssize_t bytes = REAL(copy_file_range)(from, from_offset, to, to_offset, size, flags);
    record_copy(from, to, began, from_at, to_at, bytes);
    return bytes;
}

/* ---- streams ---- */

#define STREAMING(operation, stream, type, bytes_of, name, ...)                                                        \
    int file = fileno_unlocked(stream);                                                                                \
    Descriptor *descriptor = traced(file);                                                                             \
    if (descriptor == NULL)                                                                                            \
        return REAL(name)(__VA_ARGS__);                                                                                \
    int64_t began = now();                                                                                             \
    is_inside++;                                                                                                       \
    type result = REAL(name)(__VA_ARGS__);                                                                             \
    is_inside--;                                                                                                       \
    int64_t bytes = (bytes_of) > 0 ? (int64_t)(bytes_of) : 0;                                                          \
    if (descriptor->is_shared) { /* it appends, or another process writes as well */                                   \
        int64_t end = ftello(stream);                                                                                  \
        record_stream(operation, descriptor->file, began, end > bytes ? end - bytes : 0, bytes);                       \
    } else {                                                                                                           \
        record_stream(operation, descriptor->file, began, descriptor->position, bytes);                                \
        descriptor->position += bytes;                                                                                 \
    }                                                                                                                  \
    return result

KNOWN(fread); KNOWN(fwrite); KNOWN(fread_unlocked); KNOWN(fwrite_unlocked); KNOWN(fgets); KNOWN(fgets_unlocked);
KNOWN(fgetc); KNOWN(getc); KNOWN(fputc); KNOWN(putc); KNOWN(fputs); KNOWN(fputs_unlocked); KNOWN(puts); KNOWN(putchar);
KNOWN(getline); KNOWN(getdelim); KNOWN(vfprintf); KNOWN(__vfprintf_chk);
#undef fread_unlocked
#undef fwrite_unlocked
size_t fread(void *to, size_t size, size_t count, FILE *stream) {
    STREAMING(FREAD, stream, size_t, result * size, fread, to, size, count, stream);
}
size_t fread_unlocked(void *to, size_t size, size_t count, FILE *stream) {
    STREAMING(FREAD, stream, size_t, result * size, fread_unlocked, to, size, count, stream);
}
size_t __fread_chk(void *to, size_t room, size_t size, size_t count, FILE *stream) {
    return size == 0 || count <= room / size ? fread(to, size, count, stream) : (abort(), 0);
}
size_t fwrite(const void *from, size_t size, size_t count, FILE *stream) {
    STREAMING(FWRITE, stream, size_t, result * size, fwrite, from, size, count, stream);
}
size_t fwrite_unlocked(const void *from, size_t size, size_t count, FILE *stream) {
    STREAMING(FWRITE, stream, size_t, result * size, fwrite_unlocked, from, size, count, stream);
}
char *fgets(char *to, int size, FILE *stream) {
    STREAMING(FREAD, stream, char *, result ? (int64_t)strlen(result) : 0, fgets, to, size, stream);
}
char *fgets_unlocked(char *to, int size, FILE *stream) {
    STREAMING(FREAD, stream, char *, result ? (int64_t)strlen(result) : 0, fgets_unlocked, to, size, stream);
}
char *__fgets_chk(char *to, size_t room, int size, FILE *stream) {
    return (size_t)size <= room ? fgets(to, size, stream) : (abort(), NULL);
}
int fgetc(FILE *stream) { STREAMING(FREAD, stream, int, result != EOF, fgetc, stream); }
#undef getc
int getc(FILE *stream) { STREAMING(FREAD, stream, int, result != EOF, getc, stream); }
int fputc(int character, FILE *stream) { STREAMING(FWRITE, stream, int, result != EOF, fputc, character, stream); }
#undef putc
int putc(int character, FILE *stream) { STREAMING(FWRITE, stream, int, result != EOF, putc, character, stream); }
int putchar(int character) { STREAMING(FWRITE, stdout, int, result != EOF, putchar, character); }
int fputs(const char *text, FILE *stream) {
    STREAMING(FWRITE, stream, int, result < 0 ? 0 : (int64_t)strlen(text), fputs, text, stream);
}
int fputs_unlocked(const char *text, FILE *stream) {
    STREAMING(FWRITE, stream, int, result < 0 ? 0 : (int64_t)strlen(text), fputs_unlocked, text, stream);
}
int puts(const char *text) { STREAMING(FWRITE, stdout, int, result < 0 ? 0 : (int64_t)strlen(text) + 1, puts, text); }
ssize_t getline(char **line, size_t *room, FILE *stream) {
    STREAMING(FREAD, stream, ssize_t, result, getline, line, room, stream);
}
ssize_t getdelim(char **line, size_t *room, int end, FILE *stream) {
    STREAMING(FREAD, stream, ssize_t, result, getdelim, line, room, end, stream);
}
int vfprintf(FILE *stream, const char *format, va_list values) {
    STREAMING(FWRITE, stream, int, result, vfprintf, stream, format, values);
}
int __vfprintf_chk(FILE *stream, int flag, const char *format, va_list values) {
    STREAMING(FWRITE, stream, int, result, __vfprintf_chk, stream, flag, format, values);
}
/* The headers give these functions other names, which depend on the version of glibc. */
KNOWN(__isoc99_vfscanf); KNOWN(__isoc23_vfscanf);
int __isoc99_vfscanf(FILE *stream, const char *format, va_list values);
int __isoc23_vfscanf(FILE *stream, const char *format, va_list values);
#define SCANNING(name)                                                                                                 \
    int name(FILE *stream, const char *format, va_list values) {                                                      \
        STREAMING(FREAD, stream, int, ftello(stream) - descriptor->position, name, stream, format, values);            \
    }
SCANNING(__isoc99_vfscanf)
SCANNING(__isoc23_vfscanf)
#define WITH_VALUES(last, call)                                                                                        \
    va_list values;                                                                                                    \
    va_start(values, last);                                                                                            \
    int result = call;                                                                                                 \
    va_end(values);                                                                                                    \
    return result
int fprintf(FILE *stream, const char *format, ...) { WITH_VALUES(format, vfprintf(stream, format, values)); }
int printf(const char *format, ...) { WITH_VALUES(format, vfprintf(stdout, format, values)); }
int vprintf(const char *format, va_list values) { return vfprintf(stdout, format, values); }
int __isoc99_fscanf(FILE *stream, const char *format, ...);
int __isoc23_fscanf(FILE *stream, const char *format, ...);
int __isoc99_fscanf(FILE *stream, const char *format, ...) {
    WITH_VALUES(format, __isoc99_vfscanf(stream, format, values));
}
int __isoc23_fscanf(FILE *stream, const char *format, ...) {
    WITH_VALUES(format, __isoc23_vfscanf(stream, format, values));
}
int __fprintf_chk(FILE *stream, int flag, const char *format, ...) {
    WITH_VALUES(format, __vfprintf_chk(stream, flag, format, values));
}
int __printf_chk(int flag, const char *format, ...) {
    WITH_VALUES(format, __vfprintf_chk(stdout, flag, format, values));
}
int __vprintf_chk(int flag, const char *format, va_list values) {
    return __vfprintf_chk(stdout, flag, format, values);
}

static void sought(FILE *stream) {
    Descriptor *descriptor = traced(fileno(stream));
    if (descriptor)
        descriptor->position = ftello(stream);
}
KNOWN(fseek); KNOWN(fseeko); KNOWN(fseeko64); KNOWN(rewind); KNOWN(fsetpos); KNOWN(fsetpos64);
#define SEEKING_STREAM(name, ...)                                                                                      \
    is_inside++;                                                                                                       \
    int result = REAL(name)(__VA_ARGS__);                                                                              \
    is_inside--;                                                                                                       \
    sought(stream);                                                                                                    \
    return result
int fseek(FILE *stream, long offset, int whence) { SEEKING_STREAM(fseek, stream, offset, whence); }
int fseeko(FILE *stream, off_t offset, int whence) { SEEKING_STREAM(fseeko, stream, offset, whence); }
int fseeko64(FILE *stream, off64_t offset, int whence) { SEEKING_STREAM(fseeko64, stream, offset, whence); }
int fsetpos(FILE *stream, const fpos_t *position) { SEEKING_STREAM(fsetpos, stream, position); }
int fsetpos64(FILE *stream, const fpos64_t *position) { SEEKING_STREAM(fsetpos64, stream, position); }
void rewind(FILE *stream) {
    REAL(rewind)(stream);
    sought(stream);
}

KNOWN(fflush);
int fflush(FILE *stream) {
    Descriptor *descriptor = stream ? traced(fileno(stream)) : NULL;
    if (descriptor == NULL)
        return REAL(fflush)(stream);
    int64_t began = now();
    int result = REAL(fflush)(stream);
    record(FLUSH, descriptor->file, began, 0, 0, result);
    return result;
}

/* ---- other calls on open files ---- */

#define ON_FILE(operation, offset, size, name, ...)                                                                    \
    Descriptor *descriptor = traced(file);                                                                             \
    if (descriptor == NULL)                                                                                            \
        return REAL(name)(__VA_ARGS__);                                                                                \
    int64_t began = now();                                                                                             \
    int result = REAL(name)(__VA_ARGS__);                                                                              \
    record(operation, descriptor->file, began, (int64_t)(offset), (int64_t)(size), result);                            \
    return result

KNOWN(fsync); KNOWN(fdatasync); KNOWN(sync_file_range); KNOWN(ftruncate); KNOWN(ftruncate64); KNOWN(fallocate);
KNOWN(fallocate64); KNOWN(posix_fallocate); KNOWN(posix_fallocate64); KNOWN(flock); KNOWN(fstat); KNOWN(fstat64);
int fsync(int file) { ON_FILE(FSYNC, 0, 0, fsync, file); }
int fdatasync(int file) { ON_FILE(FDATASYNC, 0, 0, fdatasync, file); }
int sync_file_range(int file, off64_t offset, off64_t size, unsigned flags) {
    ON_FILE(FDATASYNC, offset, size, sync_file_range, file, offset, size, flags);
}
int ftruncate(int file, off_t size) { ON_FILE(TRUNCATE, 0, size, ftruncate, file, size); }
int ftruncate64(int file, off64_t size) { ON_FILE(TRUNCATE, 0, size, ftruncate64, file, size); }
int fallocate(int file, int mode, off_t offset, off_t size) {
    ON_FILE(ALLOCATE, offset, size, fallocate, file, mode, offset, size);
}
int fallocate64(int file, int mode, off64_t offset, off64_t size) {
    ON_FILE(ALLOCATE, offset, size, fallocate64, file, mode, offset, size);
}
int posix_fallocate(int file, off_t offset, off_t size) {
    ON_FILE(ALLOCATE, offset, size, posix_fallocate, file, offset, size);
}
int posix_fallocate64(int file, off64_t offset, off64_t size) {
    ON_FILE(ALLOCATE, offset, size, posix_fallocate64, file, offset, size);
}
int flock(int file, int operation) {
    ON_FILE(operation & LOCK_UN ? UNLOCK : LOCK, 0, (operation & LOCK_EX) != 0, flock, file, operation);
}
int fstat(int file, struct stat *to) { ON_FILE(STAT, 0, 0, fstat, file, to); }
int fstat64(int file, struct stat64 *to) { ON_FILE(STAT, 0, 0, fstat64, file, to); }

KNOWN(posix_fadvise); KNOWN(posix_fadvise64);
#define ADVISING(name)                                                                                                 \
    Descriptor *descriptor = traced(file);                                                                             \
    if (descriptor == NULL)                                                                                            \
        return REAL(name)(file, offset, size, advice);                                                                 \
    Record values = {.began = now(), .file = descriptor->file, .offset = offset, .size = size, .more = 1};             \
    int result = REAL(name)(file, offset, size, advice);                                                               \
    values.duration = now() - values.began, values.result = result, values.flags = (uint32_t)advice;                   \
    add(&values, ADVISE);                                                                                              \
    return result
int posix_fadvise(int file, off_t offset, off_t size, int advice) { ADVISING(posix_fadvise); }
int posix_fadvise64(int file, off64_t offset, off64_t size, int advice) { ADVISING(posix_fadvise64); }

KNOWN(fcntl); KNOWN(fcntl64);
static int is_locking(int command) {
    return command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW;
}
static int controlled(int file, int command, void *argument, int (*call)(int, int, ...)) {
    if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) {
        int copy = call(file, command, argument);
        duplicated(file, copy);
        return copy;
    }
    Descriptor *descriptor = is_locking(command) ? traced(file) : NULL;
    if (descriptor == NULL)
        return call(file, command, argument);
    const struct flock *range = argument;
    int64_t began = now();
    int result = call(file, command, argument);
    record(range->l_type == F_UNLCK ? UNLOCK : LOCK, descriptor->file, began, range->l_start,
           range->l_type == F_WRLCK, result);
    return result;
}
#define CONTROLLING(name)                                                                                              \
    va_list arguments;                                                                                                 \
    va_start(arguments, command);                                                                                      \
    void *argument = va_arg(arguments, void *);                                                                        \
    va_end(arguments);                                                                                                 \
    return controlled(file, command, argument, REAL(name))
int fcntl(int file, int command, ...) { CONTROLLING(fcntl); }
int fcntl64(int file, int command, ...) { CONTROLLING(fcntl64); }

/* ---- calls on names ---- */

#define ON_NAME_OF_SIZE(operation, bytes, directory, path, name, ...)                                                  \
    uint64_t file = named(directory, path);                                                                            \
    if (file == 0)                                                                                                     \
        return REAL(name)(__VA_ARGS__);                                                                                \
    int64_t began = now();                                                                                             \
    int result = REAL(name)(__VA_ARGS__);                                                                              \
    record(operation, file, began, 0, (int64_t)(bytes), result);                                                       \
    return result
#define ON_NAME(operation, ...) ON_NAME_OF_SIZE(operation, 0, __VA_ARGS__)

KNOWN(stat); KNOWN(stat64); KNOWN(lstat); KNOWN(lstat64); KNOWN(fstatat); KNOWN(fstatat64); KNOWN(access);
KNOWN(faccessat); KNOWN(unlink); KNOWN(unlinkat); KNOWN(mkdir); KNOWN(mkdirat); KNOWN(rmdir);
KNOWN(truncate); KNOWN(truncate64);
KNOWN(__xstat); KNOWN(__xstat64); KNOWN(__lxstat); KNOWN(__lxstat64); KNOWN(remove);
int stat(const char *path, struct stat *to) { ON_NAME(STAT, AT_FDCWD, path, stat, path, to); }
int stat64(const char *path, struct stat64 *to) { ON_NAME(STAT, AT_FDCWD, path, stat64, path, to); }
int lstat(const char *path, struct stat *to) { ON_NAME(STAT, AT_FDCWD, path, lstat, path, to); }
int lstat64(const char *path, struct stat64 *to) { ON_NAME(STAT, AT_FDCWD, path, lstat64, path, to); }
int fstatat(int directory, const char *path, struct stat *to, int flags) {
    ON_NAME(STAT, directory, path, fstatat, directory, path, to, flags);
}
int fstatat64(int directory, const char *path, struct stat64 *to, int flags) {
    ON_NAME(STAT, directory, path, fstatat64, directory, path, to, flags);
}
int access(const char *path, int mode) { ON_NAME(STAT, AT_FDCWD, path, access, path, mode); }
int faccessat(int directory, const char *path, int mode, int flags) {
    ON_NAME(STAT, directory, path, faccessat, directory, path, mode, flags);
}
int unlink(const char *path) { ON_NAME(UNLINK, AT_FDCWD, path, unlink, path); }
int unlinkat(int directory, const char *path, int flags) {
    ON_NAME(flags & AT_REMOVEDIR ? RMDIR : UNLINK, directory, path, unlinkat, directory, path, flags);
}
int remove(const char *path) { ON_NAME(UNLINK, AT_FDCWD, path, remove, path); }
int mkdir(const char *path, mode_t mode) { ON_NAME(MKDIR, AT_FDCWD, path, mkdir, path, mode); }
int mkdirat(int directory, const char *path, mode_t mode) {
    ON_NAME(MKDIR, directory, path, mkdirat, directory, path, mode);
}
int rmdir(const char *path) { ON_NAME(RMDIR, AT_FDCWD, path, rmdir, path); }
int truncate(const char *path, off_t size) { ON_NAME_OF_SIZE(TRUNCATE, size, AT_FDCWD, path, truncate, path, size); }
int truncate64(const char *path, off64_t size) {
    ON_NAME_OF_SIZE(TRUNCATE, size, AT_FDCWD, path, truncate64, path, size);
}
/* Programs compiled with a glibc before 2.33 call these. */
int __xstat(int version, const char *path, struct stat *to);
int __xstat(int version, const char *path, struct stat *to) {
    ON_NAME(STAT, AT_FDCWD, path, __xstat, version, path, to);
}
int __xstat64(int version, const char *path, struct stat64 *to);
int __xstat64(int version, const char *path, struct stat64 *to) {
    ON_NAME(STAT, AT_FDCWD, path, __xstat64, version, path, to);
}
int __lxstat(int version, const char *path, struct stat *to);
int __lxstat(int version, const char *path, struct stat *to) {
    ON_NAME(STAT, AT_FDCWD, path, __lxstat, version, path, to);
}
int __lxstat64(int version, const char *path, struct stat64 *to);
int __lxstat64(int version, const char *path, struct stat64 *to) {
    ON_NAME(STAT, AT_FDCWD, path, __lxstat64, version, path, to);
}

KNOWN(rename); KNOWN(renameat); KNOWN(renameat2);
#define RENAMING(old_directory, old, new_directory, new, name, ...)                                                    \
    Record values = {.file = named(old_directory, old), .more = (int64_t)named(new_directory, new)};                   \
    if (values.file == 0 || values.more == 0)                                                                          \
        return REAL(name)(__VA_ARGS__);                                                                                \
    values.began = now();                                                                                              \
    int result = REAL(name)(__VA_ARGS__);                                                                              \
    values.duration = now() - values.began, values.result = result;                                                    \
    add(&values, RENAME);                                                                                              \
    return result
int rename(const char *old, const char *new) { RENAMING(AT_FDCWD, old, AT_FDCWD, new, rename, old, new); }
int renameat(int old_directory, const char *old, int new_directory, const char *new) {
    RENAMING(old_directory, old, new_directory, new, renameat, old_directory, old, new_directory, new);
}
int renameat2(int old_directory, const char *old, int new_directory, const char *new, unsigned flags) {
    RENAMING(old_directory, old, new_directory, new, renameat2, old_directory, old, new_directory, new, flags);
}

/* ---- barriers, and the end ---- */

/* Return a function of MPI: programs may load it so that only they see its symbols. */
static int look_into(struct dl_phdr_info *library, size_t size, void *argument) {
    const char **name = argument;
    (void)size;
    if (strstr(library->dlpi_name, "libmpi") == NULL && strstr(library->dlpi_name, "libmpich") == NULL)
        return 0;
    void *handle = dlopen(library->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    void *symbol = handle ? dlsym(handle, name[0]) : NULL;
    if (handle)
        dlclose(handle);
    if (symbol)
        name[1] = symbol;
    return symbol != NULL;
}
static void *of_mpi(const char *name) {
    const char *found[2] = {name, NULL};
    void *symbol = dlsym(RTLD_NEXT, name);
    if (symbol == NULL && dl_iterate_phdr(look_into, found))
        symbol = (void *)found[1];
    return symbol;
}

/* A communicator is a number in MPICH and a pointer in Open MPI: both are passed on as they came. */
int MPI_Barrier(void *communicator);
int MPI_Barrier(void *communicator) {
    static int (*barrier)(void *);
    if (barrier == NULL)
        barrier = (int (*)(void *))of_mpi("PMPI_Barrier");
    int64_t began = now();
    int result = barrier(communicator);
    if (is_ready())
        record(BARRIER, 0, began, 0, 0, result);
    return result;
}
void mpi_barrier_(int *communicator, int *error);
void mpi_barrier_(int *communicator, int *error) {
    static void (*barrier)(int *, int *);
    if (barrier == NULL)
        barrier = (void (*)(int *, int *))of_mpi("pmpi_barrier_");
    int64_t began = now();
    barrier(communicator, error);
    if (is_ready())
        record(BARRIER, 0, began, 0, 0, *error);
}

KNOWN(pthread_barrier_wait); KNOWN(_exit); KNOWN(_Exit);
int pthread_barrier_wait(pthread_barrier_t *barrier) {
    int64_t began = now();
    int result = REAL(pthread_barrier_wait)(barrier);
    if (is_ready() && !is_inside)
        record(BARRIER, 0, began, 0, 0, result);
    return result;
}

void _exit(int status) {
    end_process();
    REAL(_exit)(status);
    __builtin_unreachable();
}
void _Exit(int status) {
    end_process();
    REAL(_Exit)(status);
    __builtin_unreachable();
}
