# fish completion for holdfast

function __holdfast_names
    holdfast list --json 2>/dev/null | grep -o '{"name":"[^"]*"' | cut -d '"' -f 4
end

function __holdfast_using
    set -l words (commandline -opc)
    test (count $words) -ge 2; and contains -- $words[2] $argv; and not contains -- -- $words
end

function __holdfast_after_separator
    contains -- -- (commandline -opc)
end

complete -c holdfast -f
complete -c holdfast -n __fish_use_subcommand -a run -d 'Run a command while holding a lock'
complete -c holdfast -n __fish_use_subcommand -a list -d 'Show who holds what'
complete -c holdfast -n __fish_use_subcommand -a inspect -d 'Show everything about one lock'
complete -c holdfast -n __fish_use_subcommand -a release -d 'Take a lock away from its holder'
complete -c holdfast -n __fish_use_subcommand -a check -d 'Do we still hold the lock?'
complete -c holdfast -n __fish_use_subcommand -a doctor -d 'What endangers locks in this store?'
complete -c holdfast -n __fish_use_subcommand -a version -d 'Print the version'
complete -c holdfast -n __fish_use_subcommand -a help -d 'Show help'

set -l named run list inspect release check
complete -c holdfast -n "__holdfast_using $named" -a '(__holdfast_names)'
complete -c holdfast -n "__holdfast_using $named" -l store -x -a 'local: memory: quorum:' -d 'Where the locks are; several are a quorum'
complete -c holdfast -n "__holdfast_using $named" -l require -x -a 'fleet host process' -d 'Refuse a store that excludes less'
complete -c holdfast -n "__holdfast_using $named" -s h -l help -d 'Show help'
complete -c holdfast -n '__holdfast_using run list inspect release doctor' -l json -d 'As JSON'
complete -c holdfast -n '__holdfast_using help' -a "$named version"

complete -c holdfast -n '__holdfast_using run' -l no-wait -d 'Give up at once'
complete -c holdfast -n '__holdfast_using run' -l wait -x -a '1s 30s 5m' -d 'Give up after that long'
complete -c holdfast -n '__holdfast_using run' -l ttl -x -a '30s 1m 5m' -d 'How long the store keeps the lock without news'
complete -c holdfast -n '__holdfast_using run' -l max-hold -x -d 'End the command before it held the lock that long'
complete -c holdfast -n '__holdfast_using run' -l min-hold -x -d 'Keep the lock taken at least that long'
complete -c holdfast -n '__holdfast_using run' -l once-per -x -a '15m 1h 1d' -d 'Skip after a recent success'
complete -c holdfast -n '__holdfast_using run' -l shared -d 'Hold it together with others'
complete -c holdfast -n '__holdfast_using run' -l permits -x -d 'Take one of that many permits'
complete -c holdfast -n '__holdfast_using run' -l on-lost -x -a 'term kill ignore' -d 'What to do when the lock is lost'
complete -c holdfast -n '__holdfast_using run' -l grace -x -d 'Time between TERM and KILL'
complete -c holdfast -n '__holdfast_using run' -l pass-store -d 'Give the command the password, too'
complete -c holdfast -n '__holdfast_using run' -l label -x -d 'Shown to whoever asks'
complete -c holdfast -n '__holdfast_using run check' -s v -l verbose -d 'Say what happens'
complete -c holdfast -n '__holdfast_using run check' -s q -l quiet -d 'Say less'
complete -c holdfast -n __holdfast_after_separator -a '(__fish_complete_subcommand --fcs-skip=(math (contains -i -- -- (commandline -opc))))'

complete -c holdfast -n '__holdfast_using release' -l force -d 'Do not ask'
complete -c holdfast -n '__holdfast_using release' -l reason -x -d Why
complete -c holdfast -n '__holdfast_using release check' -l owner -x -d 'Which holder'
complete -c holdfast -n '__holdfast_using release check' -l token -x -d 'The fencing token'
