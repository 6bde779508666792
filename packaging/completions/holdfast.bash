# bash completion for holdfast

_holdfast_names() {
    local store=() line
    local i
    for ((i = 1; i < COMP_CWORD; ++i)); do
        if [[ ${COMP_WORDS[i]} == --store ]]; then
            # Bash splits an address at its colons.
            store=(--store "${COMP_LINE#*--store }")
            store[1]=${store[1]%% *}
        fi
    done
    local names
    names=$(holdfast list "${store[@]}" --json 2> /dev/null | grep -o '{"name":"[^"]*"' | cut -d '"' -f 4)
    while IFS= read -r line; do
        [[ -n $line && $line == "$cur"* ]] && COMPREPLY+=("$(printf '%q' "$line")")
    done <<< "$names"
}

_holdfast() {
    local cur prev words cword split
    if declare -F _init_completion > /dev/null; then
        _init_completion -n : || return
    else
        cur=${COMP_WORDS[COMP_CWORD]}
        prev=${COMP_WORDS[COMP_CWORD - 1]}
        words=("${COMP_WORDS[@]}")
        cword=$COMP_CWORD
    fi
    local commands='run list inspect release check doctor version help'
    local common='--store --require --help'

    if ((cword == 1)); then
        mapfile -t COMPREPLY < <(compgen -W "$commands --help --version" -- "$cur")
        return
    fi

    local command=${words[1]} i
    if [[ $command == run ]]; then
        for ((i = 2; i < cword; ++i)); do
            if [[ ${words[i]} == -- ]]; then
                if declare -F _command_offset > /dev/null; then
                    _command_offset $((i + 1))
                elif ((i + 1 == cword)); then
                    mapfile -t COMPREPLY < <(compgen -c -- "$cur")
                else
                    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
                fi
                return
            fi
        done
    fi

    case $prev in
        --require)
            mapfile -t COMPREPLY < <(compgen -W 'fleet host process' -- "$cur")
            return
            ;;
        --on-lost)
            mapfile -t COMPREPLY < <(compgen -W 'term kill ignore' -- "$cur")
            return
            ;;
        --store)
            mapfile -t COMPREPLY < <(compgen -W 'local: memory:' -- "$cur")
            declare -F __ltrim_colon_completions > /dev/null && __ltrim_colon_completions "$cur"
            return
            ;;
        --wait | --ttl | --max-hold | --min-hold | --once-per | --grace)
            mapfile -t COMPREPLY < <(compgen -W '1s 30s 5m 15m 1h 1d' -- "$cur")
            return
            ;;
        --permits | --label | --reason | --owner | --token)
            return
            ;;
    esac

    local options=$common
    case $command in
        run)
            options+=' --no-wait --wait --ttl --max-hold --min-hold --once-per --shared --permits'
            options+=' --on-lost --grace --pass-store --label --json --verbose --quiet --'
            ;;
        list | inspect | doctor) options+=' --json' ;;
        release) options+=' --force --reason --owner --token --json' ;;
        check) options+=' --token --owner --quiet --verbose' ;;
        help)
            mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$cur")
            return
            ;;
        *) return ;;
    esac

    if [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
        return
    fi
    _holdfast_names
    declare -F __ltrim_colon_completions > /dev/null && __ltrim_colon_completions "$cur"
}

complete -F _holdfast holdfast
