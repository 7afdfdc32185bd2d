_haulage() {
    if (( CURRENT == 2 )); then
        compadd @COMMANDS@
    elif [[ $words[2] == cp ]]; then
        shift words
        (( CURRENT-- ))
        _haulage_cp
    else
        _files
    fi
}
compdef _haulage haulage
