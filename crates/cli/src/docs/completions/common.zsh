# Completion of haulage, for zsh.

# Parts of the experiments on the line, else of all. The arguments are an experiment, its parts, and so on.
_haulage_parts() {
    local -a found all
    local word
    for word in $words; do
        if [[ $word == *.toml && -f $word ]]; then
            found+=( ${(f)"$(sed -n '/^\[\[part\]\]/,/^name/s/^name *= *"\([^"]*\)".*/\1/p' $word)"} )
        fi
    done
    while (( $# )); do
        all+=( ${=2} )
        if (( ${words[(Ie)$1]} )); then
            found+=( ${=2} )
        fi
        shift 2
    done
    (( $#found )) || found=( $all )
    compadd -- ${(u)found}
}

# Run directories below the word so far, and in runs/, where they are made; else files.
_haulage_runs() {
    local -a found
    found=( ${~${(q)PREFIX}}*/samples.csv(N:h) runs/*/samples.csv(N:h) )
    found=( ${(M)found:#${PREFIX}*} )
    if (( $#found )); then
        compadd -f -- ${(u)found}
    else
        _files
    fi
}
