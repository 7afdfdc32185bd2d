_haulage() {
    if [[ $COMP_CWORD -eq 1 ]]; then
        mapfile -t COMPREPLY < <(compgen -W '@COMMANDS@' -- "${COMP_WORDS[1]}")
    elif [[ ${COMP_WORDS[1]} == cp ]]; then
        _haulage_cp "$1" "$2" "$3" 2
    fi
}
complete -o default -F _haulage haulage
