
_haulage() {
    local cur=${COMP_WORDS[COMP_CWORD]}
    COMPREPLY=()
    if [[ $COMP_CWORD -eq 1 ]]; then
        _haulage_words '@COMMANDS@ --help --version'
    elif declare -F "_haulage_command_${COMP_WORDS[1]}" > /dev/null; then
        "_haulage_command_${COMP_WORDS[1]}" "$1" "$2" "$3" 2
    fi
}
complete -F _haulage haulage
