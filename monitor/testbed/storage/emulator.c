/* A file system in memory that takes as long as a storage device (FUSE, no privilege needed).
 *
 *   emulator DIRECTORY NAME=VALUE ...
 *
 * mounts it at DIRECTORY and runs in the foreground until it is unmounted, or until SIGINT, SIGTERM or SIGHUP,
 * which unmount it; its parent's death is a SIGTERM, too. NAME=VALUE are the fields of ModelParameters; all are needed. Data are lost at the end.
 *
 * The model (model.h) tells when each read and write ends; a thread sends the answer then. A request that arrives
 * shortly after the end of the last one of its open file arrives, for the model, at that end: the time that
 * FUSE and the caller's system calls need is not the device's.
 */
#define FUSE_USE_VERSION 314
#define _GNU_SOURCE
#include "model.h"

#include <errno.h>
#include <fuse_lowlevel.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK = 1 << 16, NAME_LIMIT = 255, BACKGROUND = 512, LARGEST_REQUEST = 1 << 20 };

static const double SHORTLY_SECONDS = 300e-6; /* after the end of the last request of an open file */

typedef struct Node {
    fuse_ino_t number;
    struct stat status;
    struct Node *parent, *children, *next; /* next: sibling */
    char name[NAME_LIMIT + 1];
    char **chunks; /* of CHUNK bytes each, NULL where nothing was written */
    int64_t chunk_count;
    uint64_t lookups;
    int is_linked;
} Node;

typedef struct {
    Node *node;
    double last_end;
} Handle;

/* An answer that is due at *at*. */
typedef struct {
    double at;
    fuse_req_t request;
    char *data; /* of a read; NULL of a write */
    size_t bytes;
} Answer;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of everything below */
static pthread_cond_t due;
static Answer *answers; /* a heap: the first one is due next */
static size_t answer_count, answer_room;
static int is_ending;
static ModelParameters has;
static Model *model;
static Node root;

/* ---- time ---- */

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static struct timespec clock_time(double seconds) {
    struct timespec time = {(time_t)seconds, (long)(1e9 * (seconds - floor(seconds)))};
    return time;
}

static void swap_answers(size_t one, size_t other) {
    Answer kept = answers[one];
    answers[one] = answers[other];
    answers[other] = kept;
}

static int schedule(Answer answer) { /* the lock is held */
    if (answer_count == answer_room) {
        size_t room = answer_room ? 2 * answer_room : 64;
        Answer *grown = realloc(answers, room * sizeof *grown);
        if (grown == NULL)
            return ENOMEM;
        answers = grown, answer_room = room;
    }
    size_t place = answer_count++;
    answers[place] = answer;
    for (; place > 0 && answers[place].at < answers[(place - 1) / 2].at; place = (place - 1) / 2)
        swap_answers(place, (place - 1) / 2);
    if (place == 0)
        pthread_cond_signal(&due);
    return 0;
}

static Answer next_answer(void) { /* the lock is held, and there is one */
    Answer first = answers[0];
    answers[0] = answers[--answer_count];
    for (size_t place = 0, child; (child = 2 * place + 1) < answer_count; place = child) {
        child += child + 1 < answer_count && answers[child + 1].at < answers[child].at;
        if (answers[place].at <= answers[child].at)
            break;
        swap_answers(place, child);
    }
    return first;
}

static void send_answer(Answer answer) {
    if (answer.data != NULL)
        fuse_reply_buf(answer.request, answer.data, answer.bytes);
    else
        fuse_reply_write(answer.request, answer.bytes);
    free(answer.data);
}

static void *send_answers(void *unused) {
    (void)unused;
    prctl(PR_SET_TIMERSLACK, 1UL);
    pthread_mutex_lock(&lock);
    while (!is_ending || answer_count > 0) {
        if (answer_count == 0) {
            pthread_cond_wait(&due, &lock);
            continue;
        }
        struct timespec until = clock_time(answers[0].at);
        if (!is_ending && answers[0].at > now() && pthread_cond_timedwait(&due, &lock, &until) == 0)
            continue; /* another answer may be due earlier */
        if (!is_ending && answers[0].at > now())
            continue;
        Answer answer = next_answer();
        pthread_mutex_unlock(&lock);
        send_answer(answer);
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* ---- nodes ---- */

static Node *node_of(fuse_ino_t number) {
    return number == FUSE_ROOT_ID ? &root : (Node *)(uintptr_t)number;
}

static Node *child_of(Node *parent, const char *name) {
    Node *child = parent->children;
    while (child != NULL && strcmp(child->name, name) != 0)
        child = child->next;
    return child;
}

static void touch(Node *node, int is_changed) {
    clock_gettime(CLOCK_REALTIME, &node->status.st_ctim);
    if (is_changed)
        node->status.st_mtim = node->status.st_ctim;
}

static void link_node(Node *node, Node *parent, const char *name) {
    snprintf(node->name, sizeof node->name, "%s", name);
    node->parent = parent;
    node->next = parent->children;
    parent->children = node;
    node->is_linked = 1;
    parent->status.st_nlink += S_ISDIR(node->status.st_mode);
    touch(parent, 1);
}

static void resize(Node *node, int64_t bytes) {
    if (bytes < node->status.st_size) {
        int64_t kept = (bytes + CHUNK - 1) / CHUNK;
        for (int64_t place = kept; place < node->chunk_count; place++) {
            free(node->chunks[place]);
            node->chunks[place] = NULL;
        }
        if (bytes % CHUNK && kept <= node->chunk_count && node->chunks[kept - 1] != NULL)
            memset(node->chunks[kept - 1] + bytes % CHUNK, 0, (size_t)(CHUNK - bytes % CHUNK));
        model_truncate(model, node->number, bytes);
    }
    node->status.st_size = bytes;
    touch(node, 1);
}

static void release_if_unused(Node *node) {
    if (node->is_linked || node->lookups > 0 || node == &root)
        return;
    resize(node, 0);
    free(node->chunks);
    free(node);
}

static void unlink_node(Node *node) {
    Node **place = &node->parent->children;
    while (*place != node)
        place = &(*place)->next;
    *place = node->next;
    node->parent->status.st_nlink -= S_ISDIR(node->status.st_mode);
    touch(node->parent, 1);
    node->is_linked = 0;
    node->status.st_nlink = 0;
    release_if_unused(node);
}

static struct fuse_entry_param entry_of(Node *node) {
    struct fuse_entry_param entry = {.ino = node->number, .attr = node->status, .attr_timeout = 1.0, .entry_timeout = 1.0};
    node->lookups++;
    return entry;
}

static int new_node(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode, Node **made) {
    if (strlen(name) > NAME_LIMIT)
        return ENAMETOOLONG;
    if (child_of(node_of(parent), name) != NULL)
        return EEXIST;
    Node *node = calloc(1, sizeof *node);
    if (node == NULL)
        return ENOMEM;
    const struct fuse_ctx *caller = fuse_req_ctx(request);
    node->number = (fuse_ino_t)(uintptr_t)node;
    node->status.st_ino = node->number;
    node->status.st_mode = mode;
    node->status.st_nlink = S_ISDIR(mode) ? 2 : 1;
    node->status.st_uid = caller->uid, node->status.st_gid = caller->gid;
    node->status.st_blksize = has.allocation_bytes < LARGEST_REQUEST ? (blksize_t)has.allocation_bytes : LARGEST_REQUEST;
    touch(node, 1);
    node->status.st_atim = node->status.st_mtim;
    link_node(node, node_of(parent), name);
    *made = node;
    return 0;
}

/* ---- data ---- */

static void copy_out(const Node *node, char *to, size_t bytes, int64_t offset) {
    for (size_t part; bytes > 0; to += part, offset += (int64_t)part, bytes -= part) {
        int64_t place = offset / CHUNK;
        part = (size_t)(CHUNK - offset % CHUNK) < bytes ? (size_t)(CHUNK - offset % CHUNK) : bytes;
        if (place < node->chunk_count && node->chunks[place] != NULL)
            memcpy(to, node->chunks[place] + offset % CHUNK, part);
        else
            memset(to, 0, part);
    }
}

static int copy_in(Node *node, const char *from, size_t bytes, int64_t offset) {
    int64_t needed = (offset + (int64_t)bytes + CHUNK - 1) / CHUNK;
    if (needed > node->chunk_count) {
        int64_t room = needed > 2 * node->chunk_count ? needed : 2 * node->chunk_count;
        char **chunks = realloc(node->chunks, (size_t)room * sizeof *chunks);
        if (chunks == NULL)
            return ENOMEM;
        memset(chunks + node->chunk_count, 0, (size_t)(room - node->chunk_count) * sizeof *chunks);
        node->chunks = chunks, node->chunk_count = room;
    }
    for (size_t part; bytes > 0; from += part, offset += (int64_t)part, bytes -= part) {
        int64_t place = offset / CHUNK;
        part = (size_t)(CHUNK - offset % CHUNK) < bytes ? (size_t)(CHUNK - offset % CHUNK) : bytes;
        if (node->chunks[place] == NULL && (node->chunks[place] = calloc(1, CHUNK)) == NULL)
            return ENOMEM;
        memcpy(node->chunks[place] + offset % CHUNK, from, part);
    }
    return 0;
}

/* Ask the model when a request of an open file ends. */
static double end_of(Handle *handle, int64_t offset, size_t bytes, int is_write) {
    double arrival = now();
    if (arrival - handle->last_end < SHORTLY_SECONDS && arrival > handle->last_end)
        arrival = handle->last_end;
    double end = model_serve(model, handle->node->number, offset, (int64_t)bytes, is_write, arrival);
    if (end >= 0.0)
        handle->last_end = end;
    return end;
}

static void do_read(fuse_req_t request, fuse_ino_t number, size_t bytes, off_t offset, struct fuse_file_info *file) {
    Handle *handle = (Handle *)(uintptr_t)file->fh;
    Node *node = node_of(number);
    pthread_mutex_lock(&lock);
    int64_t left = node->status.st_size > offset ? node->status.st_size - offset : 0;
    bytes = (int64_t)bytes < left ? bytes : (size_t)left;
    Answer answer = {0.0, request, malloc(bytes + 1), bytes};
    int error = answer.data == NULL ? ENOMEM : 0;
    if (!error) {
        copy_out(node, answer.data, bytes, offset);
        answer.at = bytes ? end_of(handle, offset, bytes, 0) : 0.0;
        error = schedule(answer);
    }
    pthread_mutex_unlock(&lock);
    if (error) {
        free(answer.data);
        fuse_reply_err(request, error);
    }
}

static void do_write(fuse_req_t request, fuse_ino_t number, const char *data, size_t bytes, off_t offset,
                     struct fuse_file_info *file) {
    Handle *handle = (Handle *)(uintptr_t)file->fh;
    Node *node = node_of(number);
    pthread_mutex_lock(&lock);
    double end = end_of(handle, offset, bytes, 1);
    int error = end < 0.0 ? ENOSPC : copy_in(node, data, bytes, offset);
    if (!error) {
        if (offset + (int64_t)bytes > node->status.st_size)
            node->status.st_size = offset + (int64_t)bytes;
        touch(node, 1);
        error = schedule((Answer){end, request, NULL, bytes});
    }
    pthread_mutex_unlock(&lock);
    if (error)
        fuse_reply_err(request, error);
}

/* ---- names ---- */

static void do_init(void *unused, struct fuse_conn_info *connection) {
    (void)unused;
    connection->max_background = BACKGROUND;
    connection->congestion_threshold = BACKGROUND * 3 / 4;
    connection->max_write = LARGEST_REQUEST;
    connection->max_read = LARGEST_REQUEST;
    connection->want |= connection->capable & FUSE_CAP_ASYNC_DIO;
}

static void do_lookup(fuse_req_t request, fuse_ino_t parent, const char *name) {
    pthread_mutex_lock(&lock);
    Node *child = child_of(node_of(parent), name);
    struct fuse_entry_param entry = {0};
    if (child != NULL)
        entry = entry_of(child);
    pthread_mutex_unlock(&lock);
    if (child == NULL)
        fuse_reply_err(request, ENOENT);
    else
        fuse_reply_entry(request, &entry);
}

static void do_forget(fuse_req_t request, fuse_ino_t number, uint64_t lookups) {
    pthread_mutex_lock(&lock);
    Node *node = node_of(number);
    node->lookups -= lookups < node->lookups ? lookups : node->lookups;
    release_if_unused(node);
    pthread_mutex_unlock(&lock);
    fuse_reply_none(request);
}

static void do_getattr(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file) {
    (void)file;
    pthread_mutex_lock(&lock);
    Node *node = node_of(number);
    node->status.st_blocks = (node->status.st_size + 511) / 512;
    struct stat status = node->status;
    pthread_mutex_unlock(&lock);
    fuse_reply_attr(request, &status, 1.0);
}

static void do_setattr(fuse_req_t request, fuse_ino_t number, struct stat *wanted, int changes,
                       struct fuse_file_info *file) {
    (void)file;
    pthread_mutex_lock(&lock);
    Node *node = node_of(number);
    if (changes & FUSE_SET_ATTR_SIZE)
        resize(node, wanted->st_size);
    if (changes & FUSE_SET_ATTR_MODE)
        node->status.st_mode = (node->status.st_mode & S_IFMT) | (wanted->st_mode & ~(mode_t)S_IFMT);
    if (changes & FUSE_SET_ATTR_UID)
        node->status.st_uid = wanted->st_uid;
    if (changes & FUSE_SET_ATTR_GID)
        node->status.st_gid = wanted->st_gid;
    touch(node, 0);
    if (changes & FUSE_SET_ATTR_ATIME)
        node->status.st_atim = wanted->st_atim;
    if (changes & FUSE_SET_ATTR_MTIME)
        node->status.st_mtim = wanted->st_mtim;
    if (changes & FUSE_SET_ATTR_ATIME_NOW)
        clock_gettime(CLOCK_REALTIME, &node->status.st_atim);
    if (changes & FUSE_SET_ATTR_MTIME_NOW)
        clock_gettime(CLOCK_REALTIME, &node->status.st_mtim);
    struct stat status = node->status;
    pthread_mutex_unlock(&lock);
    fuse_reply_attr(request, &status, 1.0);
}

static void make(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode) {
    Node *made = NULL;
    struct fuse_entry_param entry = {0};
    pthread_mutex_lock(&lock);
    int error = new_node(request, parent, name, mode, &made);
    if (!error)
        entry = entry_of(made);
    pthread_mutex_unlock(&lock);
    if (error)
        fuse_reply_err(request, error);
    else
        fuse_reply_entry(request, &entry);
}

static void do_mkdir(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode) {
    make(request, parent, name, S_IFDIR | mode);
}

static void do_mknod(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode, dev_t device) {
    (void)device;
    if (S_ISREG(mode) || S_ISFIFO(mode)) /* the kernel passes bytes through a pipe; jobs use one */
        make(request, parent, name, mode);
    else
        fuse_reply_err(request, EPERM);
}

static void do_unlink(fuse_req_t request, fuse_ino_t parent, const char *name) {
    pthread_mutex_lock(&lock);
    Node *child = child_of(node_of(parent), name);
    int error = child == NULL ? ENOENT : S_ISDIR(child->status.st_mode) ? EISDIR : 0;
    if (!error)
        unlink_node(child);
    pthread_mutex_unlock(&lock);
    fuse_reply_err(request, error);
}

static void do_rmdir(fuse_req_t request, fuse_ino_t parent, const char *name) {
    pthread_mutex_lock(&lock);
    Node *child = child_of(node_of(parent), name);
    int error = child == NULL ? ENOENT : !S_ISDIR(child->status.st_mode) ? ENOTDIR : child->children ? ENOTEMPTY : 0;
    if (!error)
        unlink_node(child);
    pthread_mutex_unlock(&lock);
    fuse_reply_err(request, error);
}

static int renamed(fuse_ino_t parent, const char *name, fuse_ino_t new_parent, const char *new_name, unsigned flags) {
    Node *node = child_of(node_of(parent), name), *target = child_of(node_of(new_parent), new_name);
    if (node == NULL)
        return ENOENT;
    if (flags & ~1u) /* RENAME_NOREPLACE is 1 */
        return EINVAL;
    if (strlen(new_name) > NAME_LIMIT)
        return ENAMETOOLONG;
    if (target == node)
        return 0;
    if (target != NULL && (flags & 1u))
        return EEXIST;
    if (target != NULL && S_ISDIR(target->status.st_mode) && target->children != NULL)
        return ENOTEMPTY;
    if (target != NULL)
        unlink_node(target);
    Node **place = &node->parent->children;
    while (*place != node)
        place = &(*place)->next;
    *place = node->next;
    node->parent->status.st_nlink -= S_ISDIR(node->status.st_mode);
    touch(node->parent, 1);
    link_node(node, node_of(new_parent), new_name);
    return 0;
}

static void do_rename(fuse_req_t request, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
                      const char *new_name, unsigned flags) {
    pthread_mutex_lock(&lock);
    int error = renamed(parent, name, new_parent, new_name, flags);
    pthread_mutex_unlock(&lock);
    fuse_reply_err(request, error);
}

static int opened(Node *node, struct fuse_file_info *file) {
    Handle *handle = calloc(1, sizeof *handle);
    if (handle == NULL)
        return ENOMEM;
    handle->node = node;
    file->fh = (uint64_t)(uintptr_t)handle;
    file->keep_cache = 1; /* as other file systems */
    return 0;
}

static void do_open(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file) {
    int error = opened(node_of(number), file);
    if (error)
        fuse_reply_err(request, error);
    else if (fuse_reply_open(request, file) != 0)
        free((Handle *)(uintptr_t)file->fh);
}

static void do_create(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode,
                      struct fuse_file_info *file) {
    Node *made = NULL;
    struct fuse_entry_param entry = {0};
    pthread_mutex_lock(&lock);
    int error = new_node(request, parent, name, S_IFREG | mode, &made);
    if (!error) {
        error = opened(made, file);
        if (error)
            unlink_node(made);
        else
            entry = entry_of(made);
    }
    pthread_mutex_unlock(&lock);
    if (error)
        fuse_reply_err(request, error);
    else
        fuse_reply_create(request, &entry, file);
}

static void do_release(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file) {
    (void)number;
    free((Handle *)(uintptr_t)file->fh);
    fuse_reply_err(request, 0);
}

static void do_fsync(fuse_req_t request, fuse_ino_t number, int only_data, struct fuse_file_info *file) {
    (void)number, (void)only_data, (void)file; /* writes are answered when they are on the device */
    fuse_reply_err(request, 0);
}

static int add_entry(fuse_req_t request, char *buffer, size_t room, size_t *used, const char *name, const Node *node,
                     off_t place) {
    size_t size = fuse_add_direntry(request, buffer + *used, room - *used, name, &node->status, place);
    if (size > room - *used)
        return 0;
    *used += size;
    return 1;
}

static void do_readdir(fuse_req_t request, fuse_ino_t number, size_t room, off_t offset, struct fuse_file_info *file) {
    (void)file;
    char *buffer = malloc(room);
    if (buffer == NULL) {
        fuse_reply_err(request, ENOMEM);
        return;
    }
    size_t used = 0;
    pthread_mutex_lock(&lock);
    Node *node = node_of(number);
    off_t place = 1;
    int has_room = offset >= place || add_entry(request, buffer, room, &used, ".", node, place);
    if (has_room && offset < ++place)
        has_room = add_entry(request, buffer, room, &used, "..", node->parent ? node->parent : node, place);
    for (Node *child = node->children; has_room && child != NULL; child = child->next)
        if (offset < ++place)
            has_room = add_entry(request, buffer, room, &used, child->name, child, place);
    pthread_mutex_unlock(&lock);
    fuse_reply_buf(request, buffer, used);
    free(buffer);
}

static void do_statfs(fuse_req_t request, fuse_ino_t number) {
    (void)number;
    pthread_mutex_lock(&lock);
    struct statvfs status = {.f_bsize = 4096,
                             .f_frsize = 4096,
                             .f_blocks = (fsblkcnt_t)has.capacity_bytes / 4096,
                             .f_bfree = (fsblkcnt_t)model_free_bytes(model) / 4096,
                             .f_namemax = NAME_LIMIT};
    pthread_mutex_unlock(&lock);
    status.f_bavail = status.f_bfree;
    fuse_reply_statfs(request, &status);
}

static const struct fuse_lowlevel_ops operations = {
    .init = do_init,
    .lookup = do_lookup,
    .forget = do_forget,
    .getattr = do_getattr,
    .setattr = do_setattr,
    .mkdir = do_mkdir,
    .mknod = do_mknod,
    .unlink = do_unlink,
    .rmdir = do_rmdir,
    .rename = do_rename,
    .open = do_open,
    .create = do_create,
    .read = do_read,
    .write = do_write,
    .release = do_release,
    .fsync = do_fsync,
    .readdir = do_readdir,
    .statfs = do_statfs,
};

/* ---- arguments ---- */

typedef struct {
    const char *name;
    char kind; /* i: int64_t, u: uint64_t, d: double */
    size_t offset;
} Field;

#define FIELD(name, kind) {#name, kind, offsetof(ModelParameters, name)}
static const Field fields[] = {
    FIELD(spindles, 'i'),
    FIELD(parity, 'i'),
    FIELD(stripe_bytes, 'i'),
    FIELD(allocation_bytes, 'i'),
    FIELD(capacity_bytes, 'i'),
    FIELD(prefetch_bytes, 'i'),
    FIELD(segments, 'i'),
    FIELD(cold_bytes, 'i'),
    FIELD(seed, 'u'),
    FIELD(seek_seconds, 'd'),
    FIELD(rotation_seconds, 'd'),
    FIELD(read_latency_seconds, 'd'),
    FIELD(write_latency_seconds, 'd'),
    FIELD(bytes_per_second, 'd'),
    FIELD(write_bytes_per_second, 'd'),
    FIELD(controller_bytes_per_second, 'd'),
    FIELD(controller_seconds, 'd'),
    FIELD(request_seconds, 'd'),
    FIELD(cold_seconds, 'd'),
    FIELD(noise, 'd'),
};
enum { FIELDS = sizeof fields / sizeof *fields };

static int refuse(const char *what, const char *text) {
    fprintf(stderr, "emulator: %s: %s\n", text, what);
    return 0;
}

static int parsed(const char *argument, char *is_given) {
    const char *value = strchr(argument, '=');
    for (size_t place = 0; value != NULL && place < FIELDS; place++) {
        const Field *field = &fields[place];
        if (strlen(field->name) != (size_t)(value - argument) || strncmp(field->name, argument, strlen(field->name)))
            continue;
        char *end = NULL;
        double number = strtod(value + 1, &end);
        if (value[1] == '\0' || *end != '\0' || !(number >= 0.0 && number <= 1e18))
            return refuse("expected a number from 0", argument);
        char *to = (char *)&has + field->offset;
        if (field->kind == 'd')
            memcpy(to, &number, sizeof number);
        else
            memcpy(to, &(int64_t){(int64_t)number}, sizeof(int64_t));
        is_given[place] = 1;
        return 1;
    }
    return refuse("expected NAME=VALUE with a field of ModelParameters", argument);
}

static int parse(int count, char **arguments) {
    char is_given[FIELDS] = {0};
    for (int place = 0; place < count; place++)
        if (!parsed(arguments[place], is_given))
            return 0;
    for (size_t place = 0; place < FIELDS; place++)
        if (!is_given[place])
            return refuse("is missing", fields[place].name);
    if (has.spindles < 1 + has.parity || has.spindles > 4096 || has.parity > 1)
        return refuse("expected 1 to 4096, and with parity one more than the data need", "spindles, parity");
    if (has.stripe_bytes < 512 || has.allocation_bytes < 4096 || has.capacity_bytes < has.allocation_bytes)
        return refuse("too small", "stripe_bytes, allocation_bytes or capacity_bytes");
    if (has.bytes_per_second <= 0.0)
        return refuse("expected more than 0", "bytes_per_second");
    return 1;
}

static int serve(const char *directory) {
    char *arguments[] = {"emulator", "-ofsname=gridcast-storage,subtype=emulated,default_permissions,max_read=1048576", NULL};
    struct fuse_args options = FUSE_ARGS_INIT(2, arguments);
    struct fuse_session *session = fuse_session_new(&options, &operations, sizeof operations, NULL);
    if (session == NULL || fuse_set_signal_handlers(session) != 0)
        return 1;
    if (fuse_session_mount(session, directory) != 0)
        return 1;
    pthread_t sender;
    if (pthread_create(&sender, NULL, send_answers, NULL) != 0)
        return 1;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    printf("mounted\n");
    fflush(stdout);
    int ended = fuse_session_loop(session);
    pthread_mutex_lock(&lock);
    is_ending = 1;
    pthread_cond_signal(&due);
    pthread_mutex_unlock(&lock);
    pthread_join(sender, NULL);
    fuse_session_unmount(session);
    fuse_remove_signal_handlers(session);
    fuse_session_destroy(session);
    return ended < 0;
}

int main(int count, char **arguments) {
    if (count < 2) {
        fprintf(stderr, "usage: emulator DIRECTORY NAME=VALUE ...\n");
        return 2;
    }
    if (!parse(count - 2, arguments + 2))
        return 2;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&due, &monotonic);
    model = model_open(&has);
    if (model == NULL) {
        fprintf(stderr, "emulator: no memory for a device of %lld bytes\n", (long long)has.capacity_bytes);
        return 1;
    }
    root.number = FUSE_ROOT_ID;
    root.status = (struct stat){.st_ino = FUSE_ROOT_ID, .st_mode = S_IFDIR | 0755, .st_nlink = 2,
                                .st_uid = getuid(), .st_gid = getgid()};
    touch(&root, 1);
    root.status.st_atim = root.status.st_mtim;
    return serve(arguments[1]);
}
