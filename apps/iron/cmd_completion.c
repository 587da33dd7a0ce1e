/* SPDX-License-Identifier: MIT */
/* cmd_completion.c: `iron completion`: the script that makes a shell complete this command. */
#include "command.h"
#include "completion.h"

#include <string.h>

static const struct shell {
    const char *name;
    void (*put)(FILE *to);
} shells[] = {{"bash", completion_bash}, {"zsh", completion_zsh}, {"fish", completion_fish}};

static iron_status run(int argc, char **argv, iron_error *err) {
    args a = {.options = NULL};
    bool is_done;
    iron_status status = command_args(&command_completion, &a, argc, argv, &is_done, err);

    if (is_done)
        return status;
    if (a.value_count != 1)
        return usage(err, "completion takes the name of one shell; give bash, zsh or fish");
    for (size_t k = 0; k < COUNT(shells); k++)
        if (strcmp(shells[k].name, a.values[0]) == 0) {
            shells[k].put(stdout);
            return IRON_OK;
        }
    return usage(err, "no completion for the shell '%.60s'; give bash, zsh or fish", a.values[0]);
}

const command command_completion = {
    "completion", "prints a script that makes a shell complete this command",
    "usage: iron completion bash|zsh|fish\n\n"
    "Prints the script of a shell: commands and options with what they do, the values that an\n"
    "option may have, and files. make install and the Debian package put all three where the\n"
    "shells look; where they are not there, the line of yours goes into its start-up file.\n\n"
    "examples: source <(iron completion bash)     # ~/.bashrc\n"
    "          source <(iron completion zsh)      # ~/.zshrc, after compinit\n"
    "          iron completion fish | source      # ~/.config/fish/config.fish\n",
    run};
