
_haulage() {
    if (( CURRENT == 2 )); then
        compadd -- @COMMANDS@ --help --version
    elif (( $+functions[_haulage_command_$words[2]] )); then
        local function=_haulage_command_$words[2]
        shift words
        (( CURRENT-- ))
        $function
    fi
}
compdef _haulage haulage
