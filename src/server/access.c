/* SPDX-License-Identifier: MIT */
/*
 * access.c: who may do what: the tokens of the token file with their roles and engines, tickets
 * that replace a token for one request, and wrong tokens, which are answered slowly.
 *
 * Of a token only its SHA-256 is kept. The time of a comparison depends neither on how much of a
 * guess is right nor on which token it is.
 */
#include "server/server_internal.h"

#include "core/hash.h"

#include <fnmatch.h>
#include <sys/random.h>

#define TOKEN_FILE_MAX  ((size_t)1 << 20)
#define TOKENS_MAX      1024u
#define STRONG_TOKEN    16u /* characters; shorter ones can be guessed */
#define HASH_PREFIX     "sha256:"
#define TICKET_TEXT     (2 * IRON_TICKET_BYTES + 1)
#define WRONG_FREE      20u       /* wrong tokens of an address that are answered at once */
#define WRONG_PERIOD_NS SECOND_NS /* in which it may have one more */
#define WRONG_WAIT_NS   SECOND_NS /* before others are answered */
#define WAIT_STEP_NS    10000000

static const char *const role_names[] = {"read", "feed", "admin"}; /* by iron__role */

/* Hex digits, of either case, and nothing else. */
static bool read_hex(const char *text, unsigned char *bytes, size_t count) {
    if (strlen(text) != 2 * count)
        return false;
    for (size_t k = 0; k < count; k++) {
        int high = iron__hex_digit(text[2 * k]), low = iron__hex_digit(text[2 * k + 1]);

        if (high < 0 || low < 0)
            return false;
        bytes[k] = (unsigned char)(high << 4 | low);
    }
    return true;
}

/* All ones if they are equal, else 0. */
static uint64_t equal(const unsigned char *a, const unsigned char *b, size_t count) {
    unsigned difference = 0;

    for (size_t k = 0; k < count; k++)
        difference |= (unsigned)(a[k] ^ b[k]);
    return (uint64_t)((difference + 0xFF) >> 8) - 1;
}

/* Token files
 *
 *     # a comment
 *     TOKEN ROLE [ENGINES]            ROLE: read, feed or admin; ENGINES: a pattern of names,
 *                                    of engines and runs
 *     sha256:HEX ROLE [ENGINES]       the token's hash instead of the token
 *
 * A file with one word is a token with all rights. No message shows any of a token. */

typedef struct token {
    unsigned char hash[IRON_SHA256_BYTES];
    iron__role role;
    char engines[IRON_ENGINE_NAME_MAX + 1]; /* "": all */
} token;

struct iron__tokens {
    size_t count, weak; /* weak: shorter than STRONG_TOKEN */
    token all[TOKENS_MAX];
};

/* is_bare: the line has one word, and is the only one of the file. Returns what is wrong, or
 * NULL. */
static const char *read_line(char *line, iron__tokens *tokens, bool is_bare) {
    char *rest = NULL, *word = strtok_r(line, " \t", &rest), *role = strtok_r(NULL, " \t", &rest);
    char *engines = strtok_r(NULL, " \t", &rest), *more = strtok_r(NULL, " \t", &rest);
    token *t = &tokens->all[tokens->count];
    size_t prefix = strlen(HASH_PREFIX), bytes = strlen(word);

    if (tokens->count == TOKENS_MAX)
        return "there are more than 1024 tokens";
    if ((!role && !is_bare) || more)
        return "write TOKEN ROLE or TOKEN ROLE ENGINES";
    t->role = IRON_ROLE_READ;
    while (role && t->role <= IRON_ROLE_ADMIN && strcmp(role, role_names[t->role]) != 0)
        t->role++;
    if (t->role > IRON_ROLE_ADMIN)
        return "the role, after the token, is read, feed or admin";
    if (!role)
        t->role = IRON_ROLE_ADMIN;
    if (engines && strlen(engines) >= sizeof t->engines)
        return "the pattern of engines is longer than a name";
    snprintf(t->engines, sizeof t->engines, "%s", engines ? engines : "");
    if (strncmp(word, HASH_PREFIX, prefix) == 0) {
        if (!read_hex(word + prefix, t->hash, sizeof t->hash))
            return "64 hexadecimal digits follow " HASH_PREFIX;
    } else {
        for (const char *at = word; *at; at++)
            if (*at <= ' ' || *at > '~' || bytes > IRON_AUTH_TOKEN_MAX)
                return "a token has 1 to 4096 visible ASCII characters";
        tokens->weak += bytes < STRONG_TOKEN;
        iron__sha256(word, bytes, t->hash);
    }
    tokens->count++;
    return NULL;
}

/* Returns what is wrong, or NULL; *number is the line, 0: the whole file. */
static const char *read_lines(char *text, size_t bytes, iron__tokens *tokens, unsigned *number) {
    size_t first = strcspn(text, " \t\r\n");
    bool is_bare = first + strspn(text + first, "\r\n") == bytes;
    const char *why = NULL;
    char *rest = text;

    if (strlen(text) != bytes)
        return "the file contains a zero byte";
    for (char *line = strsep(&rest, "\n"); line && !why; line = strsep(&rest, "\n")) {
        ++*number;
        line[strcspn(line, "\r")] = '\0';
        line += strspn(line, " \t");
        if (*line && (*line != '#' || is_bare))
            why = read_line(line, tokens, is_bare);
    }
    if (why || tokens->count)
        return why;
    *number = 0;
    return "the file is empty; write TOKEN, or lines of TOKEN ROLE [ENGINES]";
}

iron_status iron__tokens_read(const char *path, iron__log *log, iron__tokens **out,
                              iron_error *err) {
    iron__tokens *tokens;
    const char *why = NULL;
    unsigned number = 0;
    size_t bytes;
    char *text;

    *out = NULL;
    IRON_TRY(iron__small_file_read(path, "token file", TOKEN_FILE_MAX, true, &text, &bytes, err));
    tokens = calloc(1, sizeof *tokens);
    if (tokens)
        why = read_lines(text, bytes, tokens, &number);
    explicit_bzero(text, bytes);
    free(text);
    if (!tokens)
        return iron__no_memory(err, "tokens");
    if (!why) {
        if (tokens->weak)
            iron__note(log,
                       "%zu token%s shorter than %u characters and can be guessed; `openssl rand "
                       "-hex 32` makes a good one",
                       tokens->weak, tokens->weak == 1 ? " is" : "s are", STRONG_TOKEN);
        *out = tokens;
        return IRON_OK;
    }
    iron__tokens_destroy(tokens);
    if (number == 0)
        IRON_FAIL(err, IRON_E_ARG, "token file %.120s: %s", path, why);
    IRON_FAIL(err, IRON_E_ARG, "token file %.120s: line %u: %s", path, number, why);
}

void iron__tokens_destroy(iron__tokens *tokens) {
    if (tokens)
        explicit_bzero(tokens, sizeof *tokens);
    free(tokens);
}

/* Tickets */

/* Issues a ticket as hex digits, in the place of an unused one or the one that ends first. False:
 * the system provides no random bytes. */
static bool ticket_issue(iron__tickets *tickets, uint64_t now_ns, char text[TICKET_TEXT]) {
    unsigned char bytes[IRON_TICKET_BYTES];
    size_t first = 0;

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    for (size_t k = 0; k < sizeof bytes; k++)
        snprintf(text + 2 * k, 3, "%02x", bytes[k]);
    pthread_mutex_lock(&tickets->lock);
    for (size_t k = 1; k < IRON_TICKETS_MAX; k++)
        if (tickets->all[k].ends_ns < tickets->all[first].ends_ns)
            first = k;
    memcpy(tickets->all[first].bytes, bytes, sizeof bytes);
    tickets->all[first].ends_ns = now_ns + IRON_TICKET_SECONDS * SECOND_NS;
    pthread_mutex_unlock(&tickets->lock);
    explicit_bzero(bytes, sizeof bytes);
    return true;
}

/* Is the ticket valid? It no longer is afterwards. */
static bool ticket_redeem(iron__tickets *tickets, uint64_t now_ns, const char *text) {
    unsigned char guess[IRON_TICKET_BYTES];
    uint64_t ends_ns = 0;

    if (!read_hex(text, guess, sizeof guess))
        return false;
    pthread_mutex_lock(&tickets->lock);
    for (size_t k = 0; k < IRON_TICKETS_MAX; k++) {
        uint64_t is_it = equal(tickets->all[k].bytes, guess, sizeof guess);

        ends_ns |= tickets->all[k].ends_ns & is_it;
        tickets->all[k].ends_ns &= ~is_it;
    }
    pthread_mutex_unlock(&tickets->lock);
    return ends_ns > now_ns;
}

/* POST /v1/tickets */
static void create_ticket(iron__request *req) {
    char text[TICKET_TEXT];
    iron_json_writer *j;

    if (!ticket_issue(&req->server->tickets, iron__clock_ns(), text)) {
        iron__response_problem(req, "internal", "Try again a little later.",
                               "the system provides no random bytes");
        return;
    }
    j = iron__response_json(req);
    iron_json_text(j, "ticket", text);
    iron_json_number(j, "seconds", IRON_TICKET_SECONDS);
    iron__response_json_end(req, 201);
}

IRON_ROUTE(create_ticket, "POST", "/v1/tickets", .end = create_ticket);

/* Access */

iron__http_error iron__access_check(iron__request *req, iron__text authorization,
                                    const char *ticket) {
    static const char scheme[] = "Bearer ";
    size_t scheme_bytes = sizeof scheme - 1;
    iron__text guess = {NULL, 0};
    unsigned char hash[IRON_SHA256_BYTES];
    const token *found = NULL;

    if (authorization.at && authorization.bytes > scheme_bytes &&
        strncasecmp(authorization.at, scheme, scheme_bytes) == 0)
        guess = iron__text_trim(
            (iron__text){authorization.at + scheme_bytes, authorization.bytes - scheme_bytes});
    req->role = IRON_ROLE_ADMIN;
    req->engines[0] = '\0';
    if (!req->server->options.token_file)
        return iron__http_error_none();
    if (guess.at) {
        const iron__tokens *tokens;

        iron__sha256(guess.at, guess.bytes, hash);
        pthread_mutex_lock(&req->server->tokens_lock);
        tokens = req->server->tokens;
        for (size_t k = 0; k < tokens->count; k++)
            if (equal(tokens->all[k].hash, hash, sizeof hash)) /* all are compared */
                found = &tokens->all[k];
        if (found) {
            req->role = found->role;
            memcpy(req->engines, found->engines, sizeof req->engines);
        }
        pthread_mutex_unlock(&req->server->tokens_lock);
        if (found)
            return iron__http_error_none();
    }
    req->role = IRON_ROLE_READ;
    req->is_guess = guess.at || ticket;
    if (!ticket)
        return iron__http_error_make(
            "unauthorized", "send `Authorization: Bearer TOKEN` with a token of the server's file",
            "the token is missing or wrong");
    if (ticket_redeem(&req->server->tickets, iron__clock_ns(), ticket))
        return iron__http_error_none();
    return iron__http_error_make(
        "unauthorized", "get a new one: POST /v1/tickets with the server's token",
        "the ticket is invalid, was used, or is older than %u seconds", IRON_TICKET_SECONDS);
}

bool iron__request_sees(const iron__request *req, const char *engine) {
    return !req->engines[0] || fnmatch(req->engines, engine, 0) == 0;
}

iron__http_error iron__access_allows(const iron__request *req) {
    if (req->route->is_open || req->role >= req->route->role)
        return iron__access_engine(req, req->variable);
    return iron__http_error_make("forbidden", "use a token with the role that is needed",
                                 "this needs the role %s, the token has %s",
                                 role_names[req->route->role], role_names[req->role]);
}

iron__http_error iron__access_engine(const iron__request *req, const char *name) {
    if (!name[0] || iron__request_sees(req, name))
        return iron__http_error_none();
    return iron__http_error_make("forbidden", "use a token for this name",
                                 "the token is not for the name %.64s", name);
}

/* Wrong tokens
 *
 * The first WRONG_FREE wrong tokens of an address are answered at once, then one in each
 * WRONG_PERIOD_NS; answers to the others are delayed. For each address the table has the time at
 * which its allowance is restored. An address may use one of four places of the small table, and
 * takes the one whose allowance is restored first. A valid token is never delayed, even if others
 * guess from the same address. So that there are connections left for it, at most a quarter of all
 * connections wait with a delayed answer; beyond that the answer is 429. */

static bool is_too_early(iron__guesses *guesses, uint64_t key, uint64_t now_ns) {
    size_t first = (size_t)(iron__mix64(key ^ guesses->seed) % IRON_GUESSES_MAX) & ~(size_t)3;
    iron__guess *chosen = &guesses->all[first];
    uint64_t next_ns;

    for (size_t k = first; k < first + 4; k++) {
        iron__guess *g = &guesses->all[k];

        if (g->key == key) {
            chosen = g;
            break;
        }
        if (g->next_ns < chosen->next_ns)
            chosen = g;
    }
    next_ns = chosen->key == key && chosen->next_ns > now_ns ? chosen->next_ns : now_ns;
    chosen->key = key;
    if (next_ns - now_ns >= WRONG_FREE * WRONG_PERIOD_NS)
        return true;
    chosen->next_ns = next_ns + WRONG_PERIOD_NS;
    return false;
}

iron__http_error iron__access_slow_down(iron__request *req, iron__http_error error) {
    iron_server *server = req->server;
    uint64_t until_ns = server->now_ns() + WRONG_WAIT_NS;
    bool is_early;

    if (!req->is_guess)
        return error;
    pthread_mutex_lock(&server->tokens_lock);
    is_early = is_too_early(&server->guesses, req->connection->key, server->now_ns());
    pthread_mutex_unlock(&server->tokens_lock);
    if (!is_early)
        return error;
    if (atomic_fetch_add(&server->guesses.waiting, 1) >= server->options.max_connections / 4) {
        req->must_close = true;
        error = iron__http_error_make("too-many-guesses", "wait, and send the right token",
                                      "too many wrong tokens came from this address");
    } else {
        while (server->now_ns() < until_ns && !atomic_load(&server->is_stopping))
            nanosleep(&(struct timespec){.tv_nsec = WAIT_STEP_NS}, NULL);
    }
    atomic_fetch_sub(&server->guesses.waiting, 1);
    return error;
}
