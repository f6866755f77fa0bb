#include "model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_BUCKETS = 4096, WRITE_STREAMS = 64 };

/* A sequential stream that a spindle has recognised: its bytes from start to end have been read, or written. */
typedef struct {
    int64_t start, end;
    uint64_t used; /* number of the access that used it last; 0: never */
} Segment;

typedef struct {
    double free_at; /* the end of its last access */
    int64_t head;   /* the byte after the last one accessed; -1: unknown */
    uint64_t accesses;
    Segment *segments;
    Segment writes[WRITE_STREAMS];
} Spindle;

/* A block of a file. */
typedef struct {
    int64_t place;   /* the volume block; -1: nothing was written */
    int64_t written; /* bytes up to the end of its last written byte */
} Block;

typedef struct File {
    uint64_t number;
    Block *blocks;
    int64_t count;
    struct File *next;
} File;

struct Model {
    ModelParameters has;
    Spindle *spindles;
    double controller_free_at;
    File *files[FILE_BUCKETS];
    uint8_t *block_is_used;
    uint8_t *part_is_warm;
    int64_t blocks, used_blocks, next_block;
    uint64_t drawn;
};

/* Return a number below 1 that looks random (splitmix64). */
static double drawn(Model *model) {
    uint64_t mixed = model->has.seed + 0x9e3779b97f4a7c15u * ++model->drawn;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return (double)((mixed ^ (mixed >> 31)) >> 11) * 0x1p-53;
}

static double noise(Model *model) {
    if (model->has.noise == 0.0)
        return 1.0;
    double radius = sqrt(-2.0 * log(1.0 - drawn(model)));
    return exp(model->has.noise * radius * cos(6.283185307179586 * drawn(model)));
}

Model *model_open(const ModelParameters *parameters) {
    Model *model = calloc(1, sizeof *model);
    if (model == NULL)
        return NULL;
    model->has = *parameters;
    model->blocks = parameters->capacity_bytes / parameters->allocation_bytes;
    model->spindles = calloc((size_t)parameters->spindles, sizeof *model->spindles);
    model->block_is_used = calloc((size_t)model->blocks + 1, 1);
    int64_t parts = parameters->cold_bytes ? parameters->capacity_bytes / parameters->cold_bytes : 0;
    model->part_is_warm = calloc((size_t)parts + 1, 1);
    int has_failed = !model->spindles || !model->block_is_used || !model->part_is_warm;
    for (int64_t number = 0; !has_failed && number < parameters->spindles; number++) {
        Spindle *spindle = &model->spindles[number];
        spindle->head = -1;
        spindle->segments = calloc((size_t)parameters->segments + 1, sizeof *spindle->segments);
        has_failed = spindle->segments == NULL;
    }
    if (!has_failed)
        return model;
    model_close(model);
    return NULL;
}

void model_close(Model *model) {
    for (size_t bucket = 0; bucket < FILE_BUCKETS; bucket++)
        for (File *file = model->files[bucket], *next; file != NULL; file = next) {
            next = file->next;
            free(file->blocks);
            free(file);
        }
    for (int64_t number = 0; model->spindles && number < model->has.spindles; number++)
        free(model->spindles[number].segments);
    free(model->spindles);
    free(model->block_is_used);
    free(model->part_is_warm);
    free(model);
}

static File **place_of(Model *model, uint64_t number) {
    File **place = &model->files[number % FILE_BUCKETS];
    while (*place != NULL && (*place)->number != number)
        place = &(*place)->next;
    return place;
}

/* Return the file with room for *count* blocks, or NULL without memory. */
static File *file_of(Model *model, uint64_t number, int64_t count) {
    File **place = place_of(model, number);
    if (*place == NULL) {
        *place = calloc(1, sizeof **place);
        if (*place == NULL)
            return NULL;
        (*place)->number = number;
    }
    File *file = *place;
    if (count > file->count) {
        int64_t room = count > 2 * file->count ? count : 2 * file->count;
        Block *blocks = realloc(file->blocks, (size_t)room * sizeof *blocks);
        if (blocks == NULL)
            return NULL;
        memset(blocks + file->count, 0xff, (size_t)(room - file->count) * sizeof *blocks);
        file->blocks = blocks;
        file->count = room;
    }
    return file;
}

static int64_t allocated_block(Model *model) {
    while (model->block_is_used[model->next_block])
        model->next_block = (model->next_block + 1) % model->blocks;
    int64_t block = model->next_block;
    model->block_is_used[block] = 1;
    model->used_blocks++;
    model->next_block = (block + 1) % model->blocks;
    return block;
}

void model_truncate(Model *model, uint64_t number, int64_t bytes) {
    File **place = place_of(model, number), *file = *place;
    if (file == NULL)
        return;
    for (int64_t first = (bytes + model->has.allocation_bytes - 1) / model->has.allocation_bytes; first < file->count;
         first++)
        if (file->blocks[first].place >= 0) {
            model->block_is_used[file->blocks[first].place] = 0;
            model->used_blocks--;
            file->blocks[first].place = -1;
        }
    if (bytes == 0) {
        *place = file->next;
        free(file->blocks);
        free(file);
    }
}

int64_t model_free_bytes(const Model *model) {
    return (model->blocks - model->used_blocks) * model->has.allocation_bytes;
}

/* Return the stream that continues at *address*, beyond at most one stripe of parity, or has read ahead, or NULL. */
static Segment *recognised(const Model *model, Segment *streams, int64_t count, int64_t address) {
    for (Segment *stream = streams; stream < streams + count; stream++)
        if (stream->used && address >= stream->start &&
            address <= stream->end + (model->has.parity ? model->has.stripe_bytes : 0))
            return stream;
    return NULL;
}

static Segment *oldest(Segment *streams, int64_t count) {
    Segment *found = streams;
    for (Segment *stream = streams + 1; stream < streams + count; stream++)
        if (stream->used < found->used)
            found = stream;
    return found;
}

/* Return the seconds that the head needs to get to *address*: it passes a short gap, or it moves and waits. */
static double positioning(Model *model, Spindle *spindle, int64_t address) {
    if (address == spindle->head || model->has.seek_seconds + model->has.rotation_seconds == 0.0)
        return 0.0;
    double moving = model->has.seek_seconds + model->has.rotation_seconds * drawn(model);
    double passing = (double)(address - spindle->head) / model->has.bytes_per_second;
    return spindle->head >= 0 && address > spindle->head && passing < moving ? passing : moving;
}

/* Return the seconds of a write. A write cache gathers the writes of each stream, and file systems place new data
 * where the head is: it moves only for a write that replaces data and continues no stream. */
static double write_seconds(Model *model, Spindle *spindle, int64_t address, int64_t bytes, int is_new) {
    double seconds = model->has.write_latency_seconds;
    if (model->has.write_bytes_per_second == 0.0) {
        seconds += positioning(model, spindle, address) + (double)bytes / model->has.bytes_per_second;
        spindle->head = address + bytes;
        return seconds;
    }
    seconds += (double)bytes / model->has.write_bytes_per_second;
    Segment *stream = recognised(model, spindle->writes, WRITE_STREAMS, address);
    if (stream == NULL) {
        stream = oldest(spindle->writes, WRITE_STREAMS);
        if (!is_new) {
            seconds += positioning(model, spindle, address);
            spindle->head = address + bytes;
        }
    }
    *stream = (Segment){address, address + bytes, ++spindle->accesses};
    return seconds;
}

/* Return the seconds of a read. A read that continues a stream reads ahead: the stream's next reads cost nothing
 * until they have used it up. With more streams than segments each read starts anew. */
static double read_seconds(Model *model, Spindle *spindle, int64_t address, int64_t bytes) {
    Segment *segment = recognised(model, spindle->segments, model->has.segments, address);
    spindle->accesses++;
    if (segment != NULL && address + bytes <= segment->end) {
        segment->used = spindle->accesses;
        return 0.0;
    }
    int64_t known = segment != NULL && segment->end > address ? segment->end - address : 0;
    int64_t ahead = segment != NULL ? model->has.prefetch_bytes : 0;
    double seconds = model->has.read_latency_seconds + positioning(model, spindle, address + known);
    seconds += (double)(bytes - known + ahead) / model->has.bytes_per_second;
    if (model->has.segments > 0 && segment == NULL)
        segment = oldest(spindle->segments, model->has.segments);
    if (segment != NULL)
        *segment = (Segment){address, address + bytes + ahead, spindle->accesses};
    spindle->head = address + bytes + ahead;
    return seconds;
}

/* The part of a request that one spindle serves. */
typedef struct {
    int64_t address, bytes;
    int is_new; /* nothing was written there before */
} Piece;

/* Serve *piece* by a spindle, and return when that is done. */
static double serve_spindle(Model *model, int64_t number, Piece piece, int is_write, double arrival) {
    Spindle *spindle = &model->spindles[number];
    double start = spindle->free_at > arrival ? spindle->free_at : arrival;
    double seconds = is_write ? write_seconds(model, spindle, piece.address, piece.bytes, piece.is_new)
                              : read_seconds(model, spindle, piece.address, piece.bytes);
    spindle->free_at = start + seconds * noise(model);
    return spindle->free_at;
}

static double flush(Model *model, Piece *pieces, int is_write, double arrival) {
    double end = arrival;
    for (int64_t number = 0; number < model->has.spindles; number++) {
        if (pieces[number].bytes == 0)
            continue;
        double ready = serve_spindle(model, number, pieces[number], is_write, arrival);
        end = ready > end ? ready : end;
        pieces[number].bytes = 0;
    }
    return end;
}

/* Add *bytes* at *address* to the piece of a spindle; serve the piece first if it does not end there. */
static double add(Model *model, Piece *pieces, int64_t number, Piece part, int is_write, double arrival) {
    Piece *piece = &pieces[number];
    double ready = arrival;
    if (piece->bytes && piece->address + piece->bytes != part.address) {
        ready = serve_spindle(model, number, *piece, is_write, arrival);
        piece->bytes = 0;
    }
    if (piece->bytes)
        piece->bytes += part.bytes;
    else
        *piece = part;
    return ready;
}

/* Split *whole*, a part of the volume, into stripes. A write to a row of stripes also writes its parity. */
static double split(Model *model, Piece *pieces, Piece whole, int is_write, double arrival) {
    int64_t stripe = model->has.stripe_bytes, data = model->has.spindles - model->has.parity;
    double end = arrival;
    while (whole.bytes > 0) {
        int64_t number = whole.address / stripe, within = whole.address % stripe, row = number / data;
        int64_t part = stripe - within < whole.bytes ? stripe - within : whole.bytes;
        int64_t parity = model->has.parity ? data - row % model->has.spindles : -1;
        int64_t spindle = number % data + (model->has.parity && number % data >= parity);
        Piece own = {row * stripe + within, part, whole.is_new};
        double ready = add(model, pieces, spindle, own, is_write, arrival);
        end = ready > end ? ready : end;
        if (is_write && model->has.parity && number % data == data - 1) {
            ready = add(model, pieces, parity, (Piece){row * stripe, stripe, 1}, is_write, arrival);
            end = ready > end ? ready : end;
        }
        whole.address += part, whole.bytes -= part;
    }
    return end;
}

static double warming(Model *model, int64_t address) {
    if (model->has.cold_bytes == 0)
        return 0.0;
    uint8_t *is_warm = &model->part_is_warm[address / model->has.cold_bytes];
    double seconds = *is_warm ? 0.0 : model->has.cold_seconds;
    *is_warm = 1;
    return seconds;
}

double model_serve(Model *model, uint64_t number, int64_t offset, int64_t bytes, int is_write, double arrival) {
    int64_t size = model->has.allocation_bytes, last = (offset + bytes + size - 1) / size;
    File *file = file_of(model, number, last);
    if (file == NULL)
        return -1.0;
    Piece pieces[model->has.spindles];
    memset(pieces, 0, sizeof pieces);
    double start = arrival + model->has.request_seconds, end = start;
    for (int64_t left = bytes; left > 0;) {
        Block *block = &file->blocks[offset / size];
        int64_t within = offset % size, part = size - within < left ? size - within : left;
        if (is_write && block->place < 0) {
            if (model->used_blocks == model->blocks)
                return -1.0;
            *block = (Block){allocated_block(model), 0};
        }
        if (block->place >= 0) {
            Piece piece = {block->place * size + within, part, within >= block->written};
            if (is_write && block->written < within + part)
                block->written = within + part;
            start += warming(model, piece.address);
            double ready = split(model, pieces, piece, is_write, start);
            end = ready > end ? ready : end;
        }
        offset += part, left -= part;
    }
    double ready = flush(model, pieces, is_write, start);
    end = ready > end ? ready : end;
    double begin = model->controller_free_at > start ? model->controller_free_at : start;
    model->controller_free_at = begin + model->has.controller_seconds;
    if (model->has.controller_bytes_per_second > 0.0)
        model->controller_free_at += (double)bytes / model->has.controller_bytes_per_second;
    return model->controller_free_at > end ? model->controller_free_at : end;
}
