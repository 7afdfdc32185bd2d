# Completion of copying with haulage, for zsh.

_haulage_cp() {
    _arguments -s -S \
@SPECS@
        '*:file:_files'
}
