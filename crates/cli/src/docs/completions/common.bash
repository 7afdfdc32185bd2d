# Completion of haulage, for bash.

_haulage_words() {
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
}

# Words with commas between: the last is completed. A backslash before a comma is the shell's own.
_haulage_list() {
    local head=${cur%"${cur##*,}"}
    mapfile -t COMPREPLY < <(compgen -P "$head" -W "$1" -- "${cur##*,}")
}

_haulage_files() {
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen "$1" -- "$cur")
}

_haulage_words_or_files() {
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur"; compgen -f -- "$cur")
}

# Parts of the experiments on the line, else of all. The arguments are an experiment, its parts, and so on.
_haulage_parts() {
    local word words= all=
    for word in "${COMP_WORDS[@]}"; do
        if [[ $word == *.toml && -f $word ]]; then
            words+=" $(sed -n '/^\[\[part\]\]/,/^name/s/^name *= *"\([^"]*\)".*/\1/p' "$word")"
        fi
    done
    while (($#)); do
        all+=" $2"
        if [[ " ${COMP_WORDS[*]} " == *" $1 "* ]]; then
            words+=" $2"
        fi
        shift 2
    done
    _haulage_words "${words:-$all}"
}

# Run directories below the word so far, and in runs/, where they are made; else files.
_haulage_runs() {
    local run
    for run in "$cur"*/ runs/*/; do
        if [[ $run == "$cur"* && -f ${run}samples.csv && " ${COMPREPLY[*]} " != *" ${run%/} "* ]]; then
            COMPREPLY+=("${run%/}")
        fi
    done
    if [[ ${#COMPREPLY[@]} -eq 0 ]]; then
        _haulage_files -f
    fi
}
