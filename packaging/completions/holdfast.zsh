#compdef holdfast
# zsh completion for holdfast

_holdfast_names() {
    local -a store names
    (( ${+opt_args[--store]} )) && store=(--store ${(Q)opt_args[--store]})
    names=(${(f)"$(_call_program names holdfast list $store --json 2> /dev/null |
        grep -o '{"name":"[^"]*"' | cut -d '"' -f 4)"})
    compadd -a names
}

_holdfast() {
    local -a common
    common=(
        '*--store[where the locks are; several are a quorum]:address:(local\: memory\: quorum\:)'
        '--require[refuse a store that excludes less]:scope:(fleet host process)'
        '(-h --help)'{-h,--help}'[show help]'
    )

    if (( CURRENT == 2 )); then
        local -a commands
        commands=(
            'run:run a command while holding a lock'
            'list:show who holds what'
            'inspect:show everything about one lock'
            'release:take a lock away from its holder'
            'check:do we still hold the lock?'
            'doctor:what endangers locks in this store?'
            'version:print the version'
            'help:show help'
        )
        _describe command commands
        return
    fi

    local command=$words[2]
    shift words
    (( CURRENT-- ))
    case $command in
        run)
            local separator=${words[(i)--]}
            if (( separator < CURRENT )); then
                shift $separator words
                (( CURRENT -= separator ))
                _normal
                return
            fi
            _arguments $common \
                '(--wait)--no-wait[give up at once]' \
                '(--no-wait)--wait[give up after that long]:duration:(1s 30s 5m)' \
                '--ttl[how long the store keeps the lock without news]:duration:(30s 1m 5m)' \
                '--max-hold[end the command before it held the lock that long]:duration:' \
                '--min-hold[keep the lock taken at least that long]:duration:' \
                '--once-per[skip after a recent success]:duration:(15m 1h 1d)' \
                '(--permits)--shared[hold it together with others]' \
                '(--shared)--permits[take one of that many permits]:number:' \
                '--on-lost[what to do when the lock is lost]:action:(term kill ignore)' \
                '--grace[time between TERM and KILL]:duration:' \
                '--pass-store[give the command the password, too]' \
                '--label[shown to whoever asks]:text:' \
                '--json[outcome as JSON on standard error]' \
                '(-q --quiet)'{-v,--verbose}'[say what happens]' \
                '(-v --verbose)'{-q,--quiet}'[say nothing about normal outcomes]' \
                '1:lock:_holdfast_names'
            ;;
        list) _arguments $common '--json[as JSON]' '1:prefix:_holdfast_names' ;;
        doctor) _arguments $common '--json[as JSON]' ;;
        inspect) _arguments $common '--json[as JSON]' '1:lock:_holdfast_names' ;;
        release)
            _arguments $common '--json[as JSON]' '--force[do not ask]' '--reason[why]:text:' \
                '--owner[which holder]:owner:' '--token[only with this token]:token:' \
                '1:lock:_holdfast_names'
            ;;
        check)
            _arguments $common '--owner[the owner]:owner:' '--token[the fencing token]:token:' \
                '(-q --quiet -v --verbose)'{-q,--quiet}'[only the exit status]' \
                '(-q --quiet -v --verbose)'{-v,--verbose}'[also say so if it is held]' \
                '1:lock:_holdfast_names'
            ;;
        help) _values command run list inspect release check doctor version ;;
    esac
}

_holdfast "$@"
