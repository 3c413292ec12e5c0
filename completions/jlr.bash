# Completion of jlr for bash 4.4 and later. Written by `jlr completion bash`.
# click's own script trusts COMP_WORDS, which bash cuts at @ and =, where jlr does not.

_jlr_completion() {
    local IFS=$'\n' completion type value
    COMPREPLY=()
    while read -r completion; do
        type=${completion%%,*} value=${completion#*,}
        case $type in
            dir) compopt -o dirnames 2>/dev/null ;;
            file) compopt -o default 2>/dev/null ;;
            plain)
                COMPREPLY+=("$value")
                [[ $value == *[:/] ]] && compopt -o nospace 2>/dev/null # more of a path follows
                ;;
        esac
    done < <(env COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_WORDBREAKS="$COMP_WORDBREAKS" \
        _JLR_COMPLETE=bash_complete "$1" 2>/dev/null)
}

complete -o nosort -F _jlr_completion jlr
