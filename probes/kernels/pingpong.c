/* The kernel of Ping-pong: round trips of messages over one TCP connection.
 *
 *   pingpong serve PORT SECRET_FILE
 *   pingpong measure HOST PORT SECRET_FILE MIN_BYTES MAX_BYTES REPETITIONS MOST_BYTES
 *
 * serve listens on PORT (0: any), prints "listening PORT", and answers one client. It ends when that client
 * disconnects, when its own standard input is closed, or after an hour. The port is open on a shared host: a
 * client must first send the content of SECRET_FILE. The server closes a connection that sends anything else
 * or takes longer than 10 s, and continues to listen.
 *
 * measure sends messages of MIN_BYTES, then of twice the size, and so on up to MAX_BYTES; of each size
 * REPETITIONS messages, or fewer if they exceed MOST_BYTES in total, but at least 3. One message per size is
 * sent before and not counted. Prints "BYTES REPETITIONS MEDIAN FASTEST" for each size: half of the round
 * trip, in seconds.
 *
 * Protocol: 32 bytes of secret, answered by one byte; for each size the number of bytes and of repetitions,
 * each as 8 bytes in network order, then the messages. An error ends the program with a message and status
 * 1.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum {
    SECRET_BYTES = 32,
    MAX_PENDING = 16,     /* connections that have not sent the secret */
    SECRET_SECONDS = 10,  /* time to send the secret */
    STALL_SECONDS = 30,   /* maximum time without progress of a message */
    LIFE_SECONDS = 3600,
};
static const uint64_t LARGEST_BYTES = UINT64_C(1) << 30;
static const uint64_t MOST_REPETITIONS = 1000000;

static _Noreturn void die(const char *doing) {
    if (errno == EAGAIN)
        fprintf(stderr, "pingpong: cannot %s: timed out\n", doing);
    else
        fprintf(stderr, "pingpong: cannot %s: %s\n", doing, errno ? strerror(errno) : "closed by the other end");
    exit(1);
}

static uint64_t number(const char *text, uint64_t most) {
    char *end = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || *text < '0' || *text > '9' || *end != '\0' || value > most) {
        fprintf(stderr, "pingpong: not a number up to %" PRIu64 ": %s\n", most, text);
        exit(2);
    }
    return value;
}

static void read_secret(const char *path, unsigned char *secret) {
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        die("open the secret");
    if (fread(secret, 1, SECRET_BYTES, file) != SECRET_BYTES) {
        fprintf(stderr, "pingpong: cannot read the secret: %s is too short\n", path);
        exit(1);
    }
    fclose(file);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Disable Nagle's algorithm and set time limits for sending and receiving. */
static void prepare(int peer) {
    struct timeval stall = {.tv_sec = STALL_SECONDS};
    int yes = 1;
    setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &stall, sizeof stall);
    setsockopt(peer, SOL_SOCKET, SO_SNDTIMEO, &stall, sizeof stall);
}

static void send_all(int peer, const void *data, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t sent = send(peer, (const char *)data + done, size - done, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR)
            die("send");
        done += sent > 0 ? (size_t)sent : 0;
    }
}

/* Return 1, or 0 if the peer closed the connection before the first byte. */
static int receive_all(int peer, void *data, size_t size) {
    for (size_t done = 0; done < size;) {
        errno = 0;
        ssize_t got = recv(peer, (char *)data + done, size - done, 0);
        if (got == 0 && done == 0)
            return 0;
        if (got == 0 || (got < 0 && errno != EINTR))
            die("receive");
        done += got > 0 ? (size_t)got : 0;
    }
    return 1;
}

static void put(unsigned char *bytes, uint64_t value) {
    for (int i = 7; i >= 0; i--, value >>= 8)
        bytes[i] = (unsigned char)value;
}

static uint64_t get(const unsigned char *bytes) {
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value = value << 8 | bytes[i];
    return value;
}

static char *buffer_of(uint64_t size) {
    char *buffer = malloc(size > 0 ? size : 1);
    if (buffer == NULL)
        die("allocate memory");
    memset(buffer, 0x55, size);
    return buffer;
}

/* End the server when its standard input is closed, also during a message. */
static void *watch_input(void *unused) {
    char ignored[256];
    (void)unused;
    while (read(STDIN_FILENO, ignored, sizeof ignored) > 0) {
    }
    _exit(0);
}

static int listen_on(uint64_t port) {
    int yes = 1, no = 0;
    struct sockaddr_in6 any6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in any4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int listener = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 0);
    int six = listener >= 0 && setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no) == 0;
    if (six) {
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        if (bind(listener, (struct sockaddr *)&any6, sizeof any6) == 0 && listen(listener, MAX_PENDING) == 0)
            return listener;
        if (errno == EADDRINUSE || errno == EACCES)
            die("listen");
    }
    if (listener >= 0)
        close(listener);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0); /* a host without IPv6 */
    if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        bind(listener, (struct sockaddr *)&any4, sizeof any4) != 0 || listen(listener, MAX_PENDING) != 0)
        die("listen");
    return listener;
}

static unsigned port_of(int listener) {
    struct sockaddr_storage bound;
    socklen_t size = sizeof bound;
    if (getsockname(listener, (struct sockaddr *)&bound, &size) != 0)
        die("find the port");
    return ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                             : ((struct sockaddr_in *)&bound)->sin_port);
}

typedef struct {
    int peer;
    size_t received;
    double since;
    unsigned char secret[SECRET_BYTES];
} Pending;

static int is_same(const unsigned char *first, const unsigned char *second) {
    unsigned difference = 0; /* the duration does not depend on the position of a difference */
    for (int i = 0; i < SECRET_BYTES; i++)
        difference |= first[i] ^ second[i];
    return difference == 0;
}

/* Receive more of a secret. Return 1 if it is correct, 0 if it is incomplete, -1 to close the connection. */
static int receive_secret(Pending *pending, const unsigned char *secret) {
    ssize_t got =
        recv(pending->peer, pending->secret + pending->received, SECRET_BYTES - pending->received, MSG_DONTWAIT);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    pending->received += (size_t)got;
    if (got == 0)
        return -1;
    if (pending->received < SECRET_BYTES)
        return 0;
    return is_same(pending->secret, secret) ? 1 : -1;
}

/* Wait for the client with the secret; close all other connections and the listener. */
static int accept_client(int listener, const unsigned char *secret) {
    Pending pending[MAX_PENDING];
    struct pollfd polled[MAX_PENDING + 1];
    int count = 0;
    for (;;) {
        for (int i = 0; i < count; i++)
            polled[i] = (struct pollfd){.fd = pending[i].peer, .events = POLLIN};
        polled[count] = (struct pollfd){.fd = count < MAX_PENDING ? listener : -1, .events = POLLIN};
        poll(polled, (nfds_t)count + 1, 1000);
        int is_new = polled[count].revents != 0;
        for (int i = count - 1; i >= 0; i--) {
            int result = polled[i].revents != 0 ? receive_secret(&pending[i], secret) : 0;
            if (result == 1) {
                int client = pending[i].peer;
                while (count-- > 0)
                    if (pending[count].peer != client)
                        close(pending[count].peer);
                close(listener);
                return client;
            }
            if (result == -1 || now() - pending[i].since > SECRET_SECONDS) {
                close(pending[i].peer);
                pending[i] = pending[--count];
            }
        }
        int peer = is_new ? accept(listener, NULL, NULL) : -1;
        if (peer >= 0)
            pending[count++] = (Pending){.peer = peer, .since = now()};
    }
}

static void answer(int client) {
    unsigned char header[16];
    while (receive_all(client, header, sizeof header)) {
        uint64_t size = get(header), repetitions = get(header + 8);
        if (size > LARGEST_BYTES || repetitions > MOST_REPETITIONS) {
            errno = EMSGSIZE;
            die("answer");
        }
        char *buffer = buffer_of(size);
        for (uint64_t i = 0; i < repetitions; i++) {
            if (!receive_all(client, buffer, size) && size > 0)
                die("receive");
            send_all(client, buffer, size);
        }
        free(buffer);
    }
}

static int serve(char **argv) {
    unsigned char secret[SECRET_BYTES];
    pthread_t watcher;
    uint64_t port = number(argv[0], 65535);
    read_secret(argv[1], secret);
    alarm(LIFE_SECONDS);
    if (pthread_create(&watcher, NULL, watch_input, NULL) != 0)
        die("start a thread");
    int listener = listen_on(port);
    printf("listening %u\n", port_of(listener));
    if (fflush(stdout) != 0)
        die("write the port");
    int client = accept_client(listener, secret);
    prepare(client);
    send_all(client, "!", 1);
    answer(client);
    return 0;
}

static int connect_to(const char *host, const char *port) {
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *addresses = NULL;
    int failure = getaddrinfo(host, port, &hints, &addresses);
    if (failure != 0) {
        fprintf(stderr, "pingpong: cannot find %s: %s\n", host, gai_strerror(failure));
        exit(1);
    }
    for (struct addrinfo *address = addresses; address != NULL; address = address->ai_next) {
        int peer = socket(address->ai_family, address->ai_socktype, address->ai_protocol);
        if (peer < 0)
            continue;
        prepare(peer);
        if (connect(peer, address->ai_addr, address->ai_addrlen) == 0) {
            freeaddrinfo(addresses);
            return peer;
        }
        int error = errno == EINPROGRESS ? EAGAIN : errno;
        close(peer);
        errno = error;
    }
    die("connect");
}

static double round_trip(int server, char *buffer, uint64_t size) {
    double began = now();
    send_all(server, buffer, size);
    errno = 0;
    if (!receive_all(server, buffer, size))
        die("receive");
    return now() - began;
}

static int ascending(const void *first, const void *second) {
    double a = *(const double *)first, b = *(const double *)second;
    return (a > b) - (a < b);
}

static void measure_size(int server, uint64_t size, uint64_t repetitions) {
    unsigned char header[16];
    char *buffer = buffer_of(size);
    double *halves = malloc(repetitions * sizeof *halves);
    if (halves == NULL)
        die("allocate memory");
    put(header, size);
    put(header + 8, repetitions + 1);
    send_all(server, header, sizeof header);
    round_trip(server, buffer, size);
    for (uint64_t i = 0; i < repetitions; i++)
        halves[i] = round_trip(server, buffer, size) / 2;
    qsort(halves, repetitions, sizeof *halves, ascending);
    double median = (halves[(repetitions - 1) / 2] + halves[repetitions / 2]) / 2;
    printf("%" PRIu64 " %" PRIu64 " %.9f %.9f\n", size, repetitions, median, halves[0]);
    free(halves);
    free(buffer);
}

static int measure(char **argv) {
    unsigned char secret[SECRET_BYTES], welcome;
    uint64_t smallest = number(argv[3], LARGEST_BYTES), largest = number(argv[4], LARGEST_BYTES);
    uint64_t repetitions = number(argv[5], MOST_REPETITIONS - 1), most_bytes = number(argv[6], UINT64_MAX);
    read_secret(argv[2], secret);
    int server = connect_to(argv[0], argv[1]);
    send_all(server, secret, sizeof secret);
    errno = 0;
    if (!receive_all(server, &welcome, 1)) {
        fprintf(stderr, "pingpong: refused by the server\n");
        return 1;
    }
    for (uint64_t size = smallest > 0 ? smallest : 1; size <= largest; size *= 2) {
        uint64_t count = most_bytes / size < repetitions ? most_bytes / size : repetitions;
        measure_size(server, size, count < 3 ? 3 : count);
    }
    close(server);
    if (fflush(stdout) != 0)
        die("write the output");
    return 0;
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    if (argc == 4 && strcmp(argv[1], "serve") == 0)
        return serve(argv + 2);
    if (argc == 9 && strcmp(argv[1], "measure") == 0)
        return measure(argv + 2);
    fprintf(stderr, "usage: pingpong serve PORT SECRET_FILE | pingpong measure HOST PORT SECRET_FILE MIN_BYTES "
                    "MAX_BYTES REPETITIONS MOST_BYTES\n");
    return 2;
}
