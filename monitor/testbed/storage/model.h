/* The model of a storage device: when does a request end?
 *
 * The model has no clock: the caller says when a request arrives. The same requests in the same order have the
 * same times. Requests are served in the order of the calls. All functions expect one caller at a time.
 */
#ifndef MODEL_H
#define MODEL_H

#include <stdint.h>

typedef struct {
    int64_t spindles;              /* disks, or channels of flash */
    int64_t parity;                /* 1: one spindle of each stripe row holds parity (RAID-5) */
    int64_t stripe_bytes;          /* consecutive bytes on one spindle */
    int64_t allocation_bytes;      /* of a volume block; files get blocks in the order of their first writes */
    int64_t capacity_bytes;        /* of all files together */
    int64_t prefetch_bytes;        /* read ahead by a spindle that recognises a sequential stream */
    int64_t segments;              /* sequential streams that a spindle recognises at once */
    int64_t cold_bytes;            /* the first access to each part of this size takes cold_seconds; 0: never */
    uint64_t seed;
    double seek_seconds;           /* move the head to another place */
    double rotation_seconds;       /* one revolution: after a seek, a part of it passes */
    double read_latency_seconds;   /* of each access of a spindle */
    double write_latency_seconds;
    double bytes_per_second;       /* of a spindle */
    double write_bytes_per_second; /* of a spindle with a write cache, which orders writes; 0: none */
    double controller_bytes_per_second; /* of all spindles together; 0: no limit */
    double controller_seconds;     /* that the controller is busy with each request */
    double request_seconds;        /* of the way to the device and back, of each request */
    double cold_seconds;
    double noise;                  /* relative standard deviation of the seconds of an access */
} ModelParameters;

typedef struct Model Model;

/* Return a model without files, or NULL without memory. */
Model *model_open(const ModelParameters *parameters);
void model_close(Model *model);

/* Return when the request ends that arrives at *arrival* (seconds, monotonic), or a negative number if a write
 * needs more blocks than are free. Parts of a file that were never written are read without an access. */
double model_serve(Model *model, uint64_t file, int64_t offset, int64_t bytes, int is_write, double arrival);

/* Free the blocks of *file* from *bytes* on. */
void model_truncate(Model *model, uint64_t file, int64_t bytes);

int64_t model_free_bytes(const Model *model);

#endif
