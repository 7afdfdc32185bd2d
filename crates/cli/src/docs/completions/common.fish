# Completion of haulage, for fish.

function __haulage_is
    set -l words (commandline -opc)
    test (count $words) -ge 2 -a "$words[2]" = "$argv[1]"
end

# Parts of the experiments on the line, else of all. The arguments are an experiment, its parts, and so on.
function __haulage_parts
    set -l typed (commandline -op)
    set -l found
    set -l all
    for word in $typed
        if string match -q -- '*.toml' $word; and test -f $word
            set -a found (sed -n '/^\[\[part\]\]/,/^name/s/^name *= *"\([^"]*\)".*/\1/p' $word)
        end
    end
    while set -q argv[2]
        set -a all (string split ' ' -- $argv[2])
        if contains -- $argv[1] $typed
            set -a found (string split ' ' -- $argv[2])
        end
        set -e argv[1..2]
    end
    set -q found[1]; or set found $all
    printf '%s\n' $found
end

# Run directories below the word so far, and in runs/, where they are made; else files.
function __haulage_runs
    set -l word (string replace -r '^--[^=]*=' '' -- (commandline -ct))
    set -l found
    for samples in $word*/samples.csv runs/*/samples.csv
        set -l run (string replace -r '/samples.csv$' '' -- $samples)
        if string match -q -- "$word*" $run; and not contains -- $run $found
            set -a found $run
        end
    end
    if set -q found[1]
        printf '%s\n' $found
    else
        __fish_complete_path $word
    end
end

