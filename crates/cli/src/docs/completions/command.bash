
# $4 is how many words stand before the first of the command's own.
_haulage_command_@NAME@() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} joined= i
    COMPREPLY=()
    for ((i = ${4:-1}; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == -- ]]; then
            @OPERANDS@
            return
        fi
    done
    # Where = breaks words, an argument that is joined stands after one.
    if [[ $cur == = ]]; then
        joined=$prev cur=
    elif [[ $prev == = ]]; then
        joined=${COMP_WORDS[COMP_CWORD-2]}
    elif [[ $cur == --*=* ]]; then
        joined=${cur%%=*} cur=${cur#*=}
    fi
    if [[ $joined ]]; then
        case $joined in
@JOINED@
        esac
    else
        case $prev in
@APART@
        esac
    fi
    if [[ $cur == -* ]]; then
        _haulage_words '@OPTIONS@'
        if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then
            compopt -o nospace 2>/dev/null
        fi
        return
    fi
    @OPERANDS@
}
