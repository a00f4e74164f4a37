/*
 * hooks_environment.c - a guest's environment: the host's, with what the guest has changed of it.
 *
 * The process's own is never touched: putenv(3) would leave a pointer into the guest behind, and
 * other threads read the environment without any lock. The guest's children get it for real.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/guest.h"
#include "loader/hooks.h"

struct df_variable {
    struct df_variable *next; /* an older one; it stays, for somebody may hold its value */
    char *text;               /* "name=value"; NULL: it is not set */
    size_t length;            /* of the name */
    char name[];
};

/* Under the guest's lock. */
static const struct df_variable *find(const struct df_guest *guest, const char *name)
{
    const struct df_variable *at = guest->variables;
    while (at && strcmp(at->name, name) != 0)
        at = at->next;
    return at;
}

static char *value_of(const struct df_variable *variable)
{
    return variable->text ? variable->text + variable->length + 1 : NULL;
}

static int change(struct df_guest *guest, const char *name, size_t length, const char *value)
{
    size_t size = value ? length + strlen(value) + 2 : 0;
    struct df_variable *variable = malloc(sizeof(*variable) + length + 1 + size);
    if (!variable)
        return -1; /* errno is ENOMEM */
    memcpy(variable->name, name, length);
    variable->name[length] = '\0';
    variable->length = length;
    variable->text = value ? variable->name + length + 1 : NULL;
    if (value)
        snprintf(variable->text, size, "%.*s=%s", (int)length, name, value);
    pthread_mutex_lock(&guest->lock);
    variable->next = guest->variables;
    guest->variables = variable;
    pthread_mutex_unlock(&guest->lock);
    return 0;
}

void df_hooks_forget_environment(struct df_guest *guest)
{
    while (guest->variables) {
        struct df_variable *next = guest->variables->next;
        free(guest->variables);
        guest->variables = next;
    }
}

/* The oldest change first. */
static void apply(const struct df_variable *variable)
{
    if (!variable)
        return;
    apply(variable->next);
    if (variable->text)
        setenv(variable->name, value_of(variable), 1);
    else
        unsetenv(variable->name);
}

void df_hooks_apply_environment(const struct df_guest *guest)
{
    apply(guest->variables);
}

static bool has_changed(const struct df_guest *guest, const char *text)
{
    size_t length = strcspn(text, "=");
    const struct df_variable *at = guest->variables;
    while (at && (at->length != length || memcmp(at->name, text, length) != 0))
        at = at->next;
    return at;
}

/* Under the lock. */
static char **list(const struct df_guest *guest, size_t room)
{
    char **texts = malloc(room * sizeof(*texts));
    size_t count = 0;
    for (char **at = environ; texts && at && *at; at++)
        if (!has_changed(guest, *at))
            texts[count++] = *at;
    for (const struct df_variable *at = guest->variables; texts && at; at = at->next)
        if (at->text && find(guest, at->name) == at)
            texts[count++] = at->text;
    if (texts)
        texts[count] = NULL;
    return texts;
}

char **df_hooks_list_environment(struct df_guest *guest)
{
    size_t room = 1;
    for (char **at = environ; at && *at; at++)
        room++;
    pthread_mutex_lock(&guest->lock);
    for (const struct df_variable *at = guest->variables; at; at = at->next)
        room++;
    char **texts = list(guest, room);
    pthread_mutex_unlock(&guest->lock);
    return texts;
}

static char *hook_getenv(const char *name)
{
    struct df_guest *guest = df_guest_current();
    if (!guest)
        return getenv(name);
    pthread_mutex_lock(&guest->lock);
    const struct df_variable *variable = find(guest, name);
    pthread_mutex_unlock(&guest->lock);
    return variable ? value_of(variable) : getenv(name);
}

static bool is_name(const char *name)
{
    if (name && *name && !strchr(name, '='))
        return true;
    errno = EINVAL;
    return false;
}

static int hook_setenv(const char *name, const char *value, int overwrite)
{
    struct df_guest *guest = df_guest_current();
    if (!guest)
        return setenv(name, value, overwrite);
    if (!is_name(name))
        return -1;
    if (!overwrite && hook_getenv(name))
        return 0;
    return change(guest, name, strlen(name), value);
}

static int hook_unsetenv(const char *name)
{
    struct df_guest *guest = df_guest_current();
    if (!guest)
        return unsetenv(name);
    return is_name(name) ? change(guest, name, strlen(name), NULL) : -1;
}

static int hook_putenv(char *text)
{
    struct df_guest *guest = df_guest_current();
    if (!guest)
        return putenv(text);
    const char *equals = strchr(text, '=');
    if (!equals)
        return hook_unsetenv(text);
    return change(guest, text, (size_t)(equals - text), equals + 1);
}

static int hook_clearenv(void)
{
    struct df_guest *guest = df_guest_current();
    int result = 0;
    if (!guest)
        return clearenv();
    for (char **at = environ; at && *at && result == 0; at++)
        result = change(guest, *at, strcspn(*at, "="), NULL);
    for (const struct df_variable *at = guest->variables; at && result == 0; at = at->next)
        if (at->text)
            result = change(guest, at->name, at->length, NULL);
    return result;
}

const struct df_hook df_hooks_environment[] = {
    {"getenv", hook_getenv},
    {"secure_getenv", hook_getenv},
    {"setenv", hook_setenv},
    {"unsetenv", hook_unsetenv},
    {"putenv", hook_putenv},
    {"clearenv", hook_clearenv},
    {NULL, NULL},
};
