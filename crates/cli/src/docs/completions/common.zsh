# Completion of haulage, for zsh.

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
